/* Runs in a notebook's page while its kernel lives (anywidget's `initialize`): hands what pictures ask for to the kernel,
   and its answers back.  A picture is an <iframe data-graphdb="id">, which can reach nothing but its parent. */
export default {
  initialize({ model }) {
    let known = [];
    const framesOf = id => [...document.querySelectorAll("iframe[data-graphdb]")].filter(frame => frame.dataset.graphdb === id);
    const post = (id, message) => {
      for (const frame of framesOf(id)) frame.contentWindow?.postMessage({ graphdb: id, ...message }, "*");
    };
    const announce = () => {
      const now = model.get("pictures");
      for (const id of known) if (!now.includes(id)) post(id, { ready: false });
      for (const id of now) post(id, { ready: true });
      known = now;
    };
    const hear = event => {
      const asked = event.data;
      if (!asked || !known.includes(asked.graphdb)) return;
      if (!framesOf(asked.graphdb).some(frame => frame.contentWindow === event.source)) return;
      if (asked.hello) event.source.postMessage({ graphdb: asked.graphdb, ready: true }, "*");
      else if (typeof asked.expand === "string") {
        model.send({ picture: asked.graphdb, number: asked.number, expand: asked.expand });
      }
    };
    const answer = ({ picture, ...found }) => post(picture, found);
    window.addEventListener("message", hear);
    model.on("msg:custom", answer);
    model.on("change:pictures", announce);
    announce();
    return () => {
      window.removeEventListener("message", hear);
      model.off("msg:custom", answer);
      model.off("change:pictures", announce);
      for (const id of known) post(id, { ready: false });
    };
  },
};
