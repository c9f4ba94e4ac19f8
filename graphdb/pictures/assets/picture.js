"use strict";
/* Draws a graph: graphdbPicture(element, {nodes, links, omitted}, {expand}).  `expand`, where there is one, is called
   with a vertex's IRI and promises more nodes and links; who changes it later calls `changed`.  Returns {add, state}. */
(function () {
  // Okabe and Ito's colours, which people with impaired colour vision can tell apart, and darker ones of them.
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f6a00", "#004a73", "#00573f",
    "#8a3d00", "#7a4763", "#666666"];

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const escaped = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);

  function tip(head, properties) {
    const rows = Object.entries(properties).slice(0, 12)
      .map(([key, value]) => `<br>${escaped(key)}: ${escaped(value.length > 120 ? value.slice(0, 120) + "…" : value)}`);
    return `<div class="gdb-tip"><b>${escaped(head)}</b>${rows.join("")}</div>`;
  }

  function graphdbPicture(box, data, options) {
    const settings = options || {};
    const state = { nodes: [], links: [], hidden: new Set(), chosen: null };
    const byId = new Map(), seen = new Set(), colours = new Map();
    const canvas = element("div", { class: "gdb-canvas", tabindex: "0", role: "img" });
    const note = element("div", { class: "gdb-note", hidden: "" });
    const about = element("section", { "aria-live": "polite" });
    const legend = element("ul", { "aria-label": "Labels" });
    const search = element("input", { type: "search", placeholder: "Find a vertex", "aria-label": "Find a vertex" });
    const list = element("ul", { "aria-label": "Vertices" });
    const side = element("aside", { class: "gdb-side", "aria-label": "About the picture" },
      element("h2", {}, "Labels"), legend, about, element("h2", {}, "Vertices"), search, list);
    box.replaceChildren(element("div", { class: "gdb" }, canvas, side));
    const shown = element("div", { style: "position: absolute; inset: 0" });
    canvas.append(shown, note);

    const frequency = new Map();  // of several labels the rarest says the most
    const labelOf = node => node.labels.reduce((a, b) => frequency.get(b) <= frequency.get(a) ? b : a, node.labels[0] || "");
    const short = name => (name.match(/[^/#:]+$/) || [name])[0];
    const nodeOf = end => typeof end === "object" ? end : byId.get(end);  // a link has its ends' ids at first
    const colourOf = node => colours.get(labelOf(node));
    const isShown = node => !state.hidden.has(labelOf(node));
    const ink = () => getComputedStyle(box.firstChild).color;
    const paper = () => getComputedStyle(box.firstChild).backgroundColor;
    const line = () => getComputedStyle(box.firstChild).getPropertyValue("--line");

    const graph = ForceGraph()(shown)
      .nodeId("id")
      .nodeLabel(node => tip([node.caption, ...node.labels.map(label => ":" + label)].join(" "), node.properties))
      .linkLabel(link => tip(":" + link.type, link.properties))
      .nodeVisibility(isShown)
      .linkVisibility(link => isShown(nodeOf(link.source)) && isShown(nodeOf(link.target)))
      .linkColor(line)
      .linkDirectionalArrowLength(4).linkDirectionalArrowRelPos(1)
      .linkCurvature("bend")
      .linkCanvasObjectMode(() => state.links.length <= 60 || graph.zoom() > 3 ? "after" : undefined)
      .linkCanvasObject((link, context, scale) => {
        const { source: a, target: b, __controlPoints: c } = link;
        if (!Number.isFinite(a.x)) return;
        const between = axis => {
          const from = a[axis], to = b[axis], i = axis === "x" ? 0 : 1;
          if (!c) return (from + to) / 2;
          return c.length === 2 ? from / 4 + c[i] / 2 + to / 4 : from / 8 + 3 * c[i] / 8 + 3 * c[i + 2] / 8 + to / 8;
        };
        context.font = `${9 / scale}px system-ui, sans-serif`;
        context.textAlign = "center";
        context.textBaseline = "middle";
        context.lineWidth = 3 / scale;
        context.strokeStyle = paper();
        context.fillStyle = ink();
        context.strokeText(short(link.type), between("x"), between("y"));
        context.fillText(short(link.type), between("x"), between("y"));
      })
      .nodeCanvasObject((node, context, scale) => {
        const radius = node.radius;
        context.beginPath();
        context.arc(node.x, node.y, radius, 0, 7);
        context.fillStyle = colourOf(node);
        context.fill();
        if (node === state.chosen) {
          context.lineWidth = 2 / scale;
          context.strokeStyle = ink();
          context.stroke();
        }
        if (scale * radius > 5 || state.nodes.length <= 60) {
          context.font = `${11 / scale}px system-ui, sans-serif`;
          context.textAlign = "center";
          context.textBaseline = "top";
          context.fillStyle = ink();
          const text = node.caption.length > 28 ? node.caption.slice(0, 27) + "…" : node.caption;
          context.fillText(text, node.x, node.y + radius + 1 / scale);
        }
      })
      .nodePointerAreaPaint((node, colour, context) => {
        context.fillStyle = colour;
        context.beginPath();
        context.arc(node.x, node.y, node.radius + 1, 0, 7);
        context.fill();
      })
      .onNodeClick(node => choose(node, false))
      .onLinkClick(link => describe(`${link.source.caption} –[:${link.type}]→ ${link.target.caption}`, link.properties))
      .onNodeDragEnd(node => { node.fx = node.x; node.fy = node.y; })
      .cooldownTime(6000);

    function describe(head, properties, ...actions) {
      const facts = Object.entries(properties).flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]);
      about.replaceChildren(element("h2", {}, head), element("dl", {}, ...facts), ...actions);
    }

    function choose(node, move) {
      state.chosen = node;
      const actions = [];
      if (settings.expand) {
        actions.push(element("button", { class: "gdb-act", type: "button",
          onclick: () => settings.expand(node.id).then(add, failed) }, "Expand"));
      }
      describe([node.caption, ...node.labels.map(label => ":" + label)].join(" "), { iri: node.id, ...node.properties }, ...actions);
      if (move && node.x !== undefined) { graph.centerAt(node.x, node.y, 400); graph.zoom(Math.max(graph.zoom(), 2.5), 400); }
      graph.nodeColor(graph.nodeColor());  // draw anew
    }

    function failed(error) {
      note.textContent = String(error && error.message || error);
      note.hidden = false;
    }

    function bend() {
      const between = new Map();
      for (const link of state.links) {
        const ends = [link.source.id || link.source, link.target.id || link.target];
        const key = JSON.stringify([...ends].sort());
        if (!between.has(key)) between.set(key, []);
        between.get(key).push([link, ends]);
      }
      for (const links of between.values()) {
        links.forEach(([link, [from, to]], i) => {
          if (from === to) link.bend = 0.5 + 0.3 * i;
          else link.bend = links.length < 2 ? 0 : 0.5 * (i - (links.length - 1) / 2) / links.length * (from < to ? 1 : -1) * 2;
        });
      }
    }

    function fill() {
      frequency.clear();
      for (const node of state.nodes) for (const label of node.labels) frequency.set(label, (frequency.get(label) || 0) + 1);
      const counts = new Map();
      for (const node of state.nodes) counts.set(labelOf(node), (counts.get(labelOf(node)) || 0) + 1);
      for (const label of [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a))) {
        if (!colours.has(label)) colours.set(label, COLOURS[colours.size % COLOURS.length]);
      }
      legend.replaceChildren(...[...counts].sort((a, b) => b[1] - a[1]).map(([label, count]) => {
        const dot = element("span", { class: "gdb-dot", style: `background: ${colours.get(label)}` });
        const press = () => {
          state.hidden.has(label) ? state.hidden.delete(label) : state.hidden.add(label);
          fill();
          graph.nodeVisibility(isShown);
        };
        return element("li", {}, element("button", { type: "button", title: label, "aria-pressed": String(!state.hidden.has(label)), onclick: press },
          dot, `${short(label) || "(no label)"} ${count}`));
      }));
      const wanted = search.value.toLowerCase();
      const found = state.nodes.filter(node => isShown(node) && (!wanted || node.caption.toLowerCase().includes(wanted)));
      list.replaceChildren(...found.slice(0, 200).map(node => element("li", {},
        element("button", { type: "button", onclick: () => choose(node, true) }, node.caption))));
      canvas.setAttribute("aria-label", `A graph of ${state.nodes.length} vertices and ${state.links.length} edges; they are listed beside it`);
    }

    function add(more) {
      for (const node of more.nodes) {
        if (!byId.has(node.id)) { byId.set(node.id, node); state.nodes.push(node); }
      }
      for (const link of more.links) {
        const key = JSON.stringify([link.source, link.type, link.target, link.properties]);
        const own = more === data ? key + state.links.length : key;  // parallel edges of one answer are several
        if (!seen.has(own) && (more === data || !seen.has("*" + key))) {
          seen.add(own); seen.add("*" + key);
          state.links.push({ ...link });
        }
      }
      const degree = new Map();
      for (const link of state.links) {
        for (const end of [link.source.id || link.source, link.target.id || link.target]) degree.set(end, (degree.get(end) || 0) + 1);
      }
      for (const node of state.nodes) node.radius = 3 + Math.min(5, Math.sqrt(degree.get(node.id) || 0));
      if (more.omitted) { note.textContent = `${more.omitted.toLocaleString()} more vertices and edges are not drawn`; note.hidden = false; }
      bend();
      fill();
      graph.graphData({ nodes: state.nodes, links: state.links });
    }

    settings.changed = () => { if (state.chosen) choose(state.chosen, false); };
    search.addEventListener("input", fill);
    canvas.addEventListener("keydown", event => {
      const step = 40 / graph.zoom(), { x, y } = graph.centerAt();
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      if (moves[event.key]) graph.centerAt(x + moves[event.key][0], y + moves[event.key][1]);
      else if (event.key === "+" || event.key === "=") graph.zoom(graph.zoom() * 1.3);
      else if (event.key === "-") graph.zoom(graph.zoom() / 1.3);
      else if (event.key === "0") graph.zoomToFit(400, 30);
      else return;
      event.preventDefault();
    });
    const resize = () => graph.width(canvas.clientWidth).height(canvas.clientHeight);
    new ResizeObserver(resize).observe(canvas);
    resize();
    add(data);
    let fitted = false;
    const fit = () => {
      graph.zoomToFit(0, 40);
      if (graph.zoom() > 4) graph.zoom(4);
    };
    graph.onEngineStop(() => {
      if (!fitted) fit();
      state.settled = fitted = true;
    });
    setTimeout(() => { if (!fitted) fit(); }, 900);
    return { add, state, graph };
  }

  // The options of a picture in a notebook: it can expand while its parent, which bridge.js runs in, says so.
  function graphdbLive(id) {
    const options = {}, waiting = new Map();
    const post = message => globalThis.parent.postMessage({ graphdb: id, ...message }, "*");
    const expand = iri => new Promise((resolve, reject) => {
      const number = waiting.size ? Math.max(...waiting.keys()) + 1 : 1;
      waiting.set(number, { resolve, reject });
      post({ number, expand: iri });
    });
    addEventListener("message", event => {
      const found = event.data;
      if (event.source !== globalThis.parent || !found || found.graphdb !== id) return;
      if (typeof found.ready === "boolean") {
        options.expand = found.ready ? expand : undefined;
        if (options.changed) options.changed();
        return;
      }
      const asked = waiting.get(found.number);
      if (!asked) return;
      waiting.delete(found.number);
      if (found.error) asked.reject(new Error(found.error)); else asked.resolve(found.graph);
    });
    post({ hello: true });
    return options;
  }

  globalThis.graphdbPicture = graphdbPicture;
  globalThis.graphdbLive = graphdbLive;
})();
