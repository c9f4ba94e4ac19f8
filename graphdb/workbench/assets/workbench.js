"use strict";
(function () {
  const byId = id => document.getElementById(id);
  const token = location.hash.slice(1) || sessionStorage.getItem("graphdb-token") || "";
  sessionStorage.setItem("graphdb-token", token);
  if (location.hash) history.replaceState(null, "", location.pathname);

  async function ask(action, given, signal) {
    const answered = await fetch("/api/" + action, {
      method: "POST", body: JSON.stringify(given || {}), signal,
      headers: { "Content-Type": "application/json", "Authorization": "Bearer " + token },
    });
    return answered.json();
  }

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // --- the editor

  const editor = CodeMirror.fromTextArea(byId("text"), {
    mode: "cypher", lineNumbers: true, matchBrackets: true, autoCloseBrackets: true, lineWrapping: true,
    inputStyle: "contenteditable", screenReaderLabel: byId("ask").querySelector("label").textContent,
    gutters: ["CodeMirror-linenumbers"],
    lint: { getAnnotations: check, async: true, delay: 300 },
    hintOptions: { hint: complete, completeSingle: false },
    extraKeys: {
      "Ctrl-Enter": () => run(), "Cmd-Enter": () => run(), "Ctrl-Space": "autocomplete",
      "Esc": () => editor.addKeyMap({ name: "leave", "Tab": false, "Shift-Tab": false }),
      "Tab": "insertSoftTab", "Shift-Tab": "indentLess",
      "Ctrl-Up": () => recall(1), "Ctrl-Down": () => recall(-1),
    },
  });
  editor.on("blur", () => editor.removeKeyMap("leave"));

  editor.on("inputRead", (_, change) => {
    if (/[:.\w]$/.test(change.text.join("\n")) && !editor.state.completionActive) editor.showHint();
  });

  async function complete() {
    const cursor = editor.getCursor();
    const before = editor.getRange({ line: 0, ch: 0 }, cursor);
    const { found } = await ask("complete", { text: before });
    if (!found || !found.length) return null;
    const from = { line: cursor.line, ch: cursor.ch - found[0].length };
    const list = found.slice(0, 100).map(each => ({
      text: each.text,
      render: (box, _, given) => box.append(given.text, element("span", { class: "count" }, "  " + each.kind)),
    }));
    return { list, from, to: cursor };
  }

  async function check(text, update) {
    const { errors } = await ask("check", { text });
    update((errors || []).map(error => {
      const line = (error.line || 1) - 1, from = (error.column || 1) - 1;
      const rest = (editor.getLine(line) || "").slice(from), word = rest.match(/^[\w]+|^\S/);
      const message = error.message + (error.hint ? "\nhint: " + error.hint : "");
      return { from: { line, ch: word ? from : Math.max(0, from - 1) }, to: { line, ch: from + (word ? word[0].length : 1) }, message, severity: "error" };
    }));
  }

  // --- answers

  let running = null, showing = "table", statements = [], recalled = -1;

  function show(tab) {
    showing = tab;
    for (const name of ["table", "graph", "plan"]) {
      byId("view-" + name).hidden = name !== tab;
      byId("tab-" + name).setAttribute("aria-selected", String(name === tab));
      byId("tab-" + name).tabIndex = name === tab ? 0 : -1;
    }
  }

  async function run() { await answer("run", {}); }

  async function answer(action, more) {
    const text = editor.getSelection() || editor.getValue();
    if (running || !text.trim()) return;
    running = performance.now();
    byId("mistake").textContent = "";
    byId("run").disabled = true;
    byId("stop").disabled = false;
    const clock = setInterval(() => { byId("status").textContent = `running ${((performance.now() - running) / 1000).toFixed(1)} s`; }, 100);
    try {
      const found = await ask(action, { text, ...more });
      byId("status").textContent = "";
      if (found.error) fail(found.error); else fill(found);
    } catch (error) {
      fail({ message: "graphdb does not answer: " + error.message });
    } finally {
      clearInterval(clock);
      if (byId("status").textContent.startsWith("running")) byId("status").textContent = "";
      running = null;
      byId("run").disabled = false;
      byId("stop").disabled = true;
      refresh();
    }
  }

  function fail(error) { byId("mistake").textContent = error.text || error.message; }

  function fill(found) {
    if (found.plan) {
      byId("view-plan").replaceChildren(plan(found.plan));
      show("plan");
      return;
    }
    const seconds = found.seconds < 1 ? `${(found.seconds * 1000).toFixed(1)} ms` : `${found.seconds.toFixed(2)} s`;
    const told = found.columns.length ? `${found.count.toLocaleString()} ${found.count === 1 ? "row" : "rows"}, ${seconds}` : `${found.message || "done"}, ${seconds}`;
    byId("status").textContent = told;
    byId("mistake").textContent = found.warnings.map(warning => "warning: " + warning).join("\n");
    byId("view-table").replaceChildren(found.columns.length ? table(found) : element("p", { class: "told" }, found.message || "done"));
    byId("view-graph").replaceChildren();
    if (found.graph) {
      show("graph");
      globalThis.drawn = graphdbPicture(byId("view-graph"), found.graph, { expand });
    } else {
      byId("view-graph").append(element("p", { class: "told" }, "The answer has no vertices, edges or paths: MATCH (a)-[e]->(b) RETURN a, e, b"));
      show("table");
    }
  }

  async function expand(iri) {
    const found = await ask("expand", { iri });
    if (found.error) { fail(found.error); return { nodes: [], links: [] }; }
    return found.graph;
  }

  function table({ columns, rows, count }) {
    const head = element("tr", {}, ...columns.map(name => element("th", { scope: "col" }, name)));
    const body = rows.map(row => element("tr", {}, ...row.map(value => {
      if (value === null) return element("td", { class: "null" }, "null");
      return element("td", typeof value === "number" ? { class: "number" } : {}, typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 20, useGrouping: false }) : String(value));
    })));
    const cut = rows.length < count ? `The first ${rows.length.toLocaleString()} of ${count.toLocaleString()} rows` : "";
    return element("table", {}, element("caption", cut ? {} : { class: "unseen" }, cut || "Rows"), element("thead", {}, head), element("tbody", {}, ...body));
  }

  function plan(parts) {
    const times = below => below.flatMap(part => [parseFloat(part.facts["~ms"] ?? part.facts.ms) || 0, ...times(part.children)]);
    const most = Math.max(...times(parts), 0);
    const draw = part => {
      const { "~ms": shared, ms, step, binds, from, operator, of, ...facts } = part.facts;
      const time = shared ?? ms;
      const told = Object.entries(facts).map(([name, value]) => `${name}: ${value}`);
      const row = element("li", { role: "treeitem", "aria-expanded": "true" }, element("div", { class: "title" }, part.title));
      if (told.length || time) {
        const bar = time && most ? [element("span", { class: "bar", style: `width: ${Math.max(2, 160 * parseFloat(time) / most)}px` })] : [];
        row.append(element("div", { class: "facts" }, ...bar, [time ? `${time} ms` : "", ...told].filter(Boolean).join(" · ")));
      }
      if (part.children.length) row.append(element("ul", { role: "group" }, ...part.children.map(draw)));
      return row;
    };
    return element("div", { class: "plan" }, element("ul", { role: "tree", "aria-label": "Plan" }, ...parts.map(draw)));
  }

  // --- what the database holds

  function put(text) { editor.setValue(text); editor.focus(); editor.execCommand("goDocEnd"); }
  const name = text => /^[^\W\d]\w*(:[^\W\d]\w*)?$/.test(text) ? text : text.includes("://") || text.startsWith("urn:") ? `<${text}>` : "`" + text + "`";

  function list(id, rows, statement) {
    byId(id).replaceChildren(...rows.map(([text, count, title]) => element("li", {},
      element("button", { type: "button", title: title || text, onclick: () => put(statement(text)) },
        text.includes("://") ? text.match(/[^/#]*$/)[0] || text : text, " ", element("span", { class: "count" }, count === undefined ? "" : count.toLocaleString())))));
  }

  async function refresh() {
    const found = await ask("about");
    if (found.error) { fail(found.error); return; }
    byId("path").textContent = found.path;
    document.title = `${found.path} – graphdb`;
    list("labels", found.labels, label => `MATCH (n:${name(label)}) RETURN n LIMIT 25`);
    list("types", found.types, type => `MATCH (a)-[e:${name(type)}]->(b) RETURN a, e, b LIMIT 25`);
    list("keys", found.keys.map(([key, of, count, types]) => [key, count, `of ${of}: ${types.join(", ")}`]),
      key => `MATCH (n) WHERE n.${name(key)} IS NOT NULL RETURN n LIMIT 25`);
    list("tables", found.tables.map(table => [table]), table => `SELECT * FROM "${table.replaceAll('"', '""')}" LIMIT 25`);
    statements = found.history;
    list("history", statements.map(text => [text]), text => text);
  }

  function recall(by) {
    recalled = Math.min(Math.max(recalled + by, -1), statements.length - 1);
    put(recalled < 0 ? "" : statements[recalled]);
  }

  // --- loading

  async function load(chosen) {
    for (const file of chosen) {
      const told = byId("load-told"), bar = byId("load-progress");
      const query = new URLSearchParams({ name: file.name });
      for (const [key, id] of [["label", "load-label"], ["type", "load-type"]]) if (byId(id).value) query.set(key, byId(id).value);
      bar.hidden = false;
      bar.removeAttribute("value");
      told.textContent = `loading ${file.name}`;
      const clock = setInterval(async () => {
        const { phase, share, triples } = await ask("progress");
        if (!phase || bar.hidden) return;
        if (share !== null && share !== undefined) bar.value = share; else bar.removeAttribute("value");
        told.textContent = `${file.name}: ${phase}${triples ? `, ${triples.toLocaleString()} triples` : ""}`;
      }, 250);
      let found;
      try {
        const answered = await fetch("/api/load?" + query, { method: "POST", body: file, headers: { "Authorization": "Bearer " + token } });
        found = await answered.json();
      } catch (error) {
        found = { error: { message: error.message } };
      }
      clearInterval(clock);
      bar.hidden = true;
      told.textContent = found.error ? found.error.text || found.error.message
        : `${file.name}: ${found.read}, ${found.new.toLocaleString()} new, in ${found.seconds.toFixed(1)} s`;
      await refresh();
      if (found.error) break;
    }
  }

  // --- what is pressed

  byId("ask").addEventListener("submit", event => { event.preventDefault(); run(); });
  byId("stop").addEventListener("click", () => ask("stop"));
  byId("explain").addEventListener("click", () => answer("plan", { profile: false }));
  byId("profile").addEventListener("click", () => answer("plan", { profile: true }));
  byId("draw-schema").addEventListener("click", async () => {
    const found = await ask("schema");
    if (found.error) { fail(found.error); return; }
    show("graph");
    globalThis.drawn = graphdbPicture(byId("view-graph"), found.graph);
  });
  byId("file").addEventListener("change", event => load([...event.target.files]));
  const tabs = ["table", "graph", "plan"];
  for (const tab of tabs) {
    byId("tab-" + tab).addEventListener("click", () => show(tab));
    byId("tab-" + tab).addEventListener("keydown", event => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) { show(tabs[(tabs.indexOf(showing) + by + 3) % 3]); byId("tab-" + showing).focus(); }
    });
  }
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, event => { event.preventDefault(); byId("drop").classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, () => byId("drop").classList.remove("over"));
  document.addEventListener("drop", event => { event.preventDefault(); load([...event.dataTransfer.files]); });

  globalThis.workbench = { editor, load };
  refresh();
  editor.focus();
})();
