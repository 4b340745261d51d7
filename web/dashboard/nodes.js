/** The nodes of the domain, as the node that is asked knows them. */

import { DataTable, badge, card, count, el, empty, nodeLink, plural, rate, say, since, tile } from "./dom.js";
import { GROUP_PATIENCE, GROUP_RENEWAL } from "../src/constants.js";
import { DROPS, GROUNDS } from "./refusals.js";

const PREFIXES = {
  "refused.": (name) => {
    const [ground, code] = name.split(".");
    return ["Refused", `${code} ${GROUNDS[ground]?.[0] ?? ground}`];
  },
  "dropped.": (name) => ["Dropped", name],
  "violations.": (name) => ["Undeclared step", name],
  "broken_claims.": (name) => ["Broken claim", name],
};

export function openNodes(root, { model }) {
  const tiles = ["Nodes", "Runtimes online", "Messages per second", "Refused per second", "Dropped per second"].map((label) => tile(label));
  const trouble = el("p", { class: "notice", role: "alert", hidden: true });
  const engine = el("p", {});
  const figure = (node, prefix) => model.sum(prefix, node.counts);
  const counted = (key, label, prefix, wide) => ({
    key, label, value: (node) => figure(node, prefix), text: (node) => (node.figures ? count(figure(node, prefix)) : "–"), numeric: true, wide,
  });
  const rated = (key, label) => ({
    key, label, value: (node) => node.rates?.[key] ?? 0, text: (node) => (node.rates ? rate(node.rates[key]) : "–"), numeric: true, wide: true,
  });
  const table = new DataTable({
    caption: "Nodes of the domain",
    id: (node) => node.name,
    none: empty("No node is known", ""),
    columns: [
      { key: "name", label: "Node", value: (node) => node.name, text: (node) => `${node.name} ${node.url ?? ""}`, cell: nodeCell },
      { key: "state", label: "State", value: (node) => node.state, cell: (node) => badge(node.state), tight: true },
      counted("sessions", "Online", "sessions.open"),
      rated("received", "Messages/s"),
      rated("refused", "Refused/s"),
      rated("dropped", "Dropped/s"),
      counted("waiting", "Waiting", "outbox_messages", "extra"),
      counted("outages", "Engine outages", "engine_outages", "extra"),
      counted("fences", "Fenced", "group_fences", "extra"),
      { key: "up", label: "Up", value: (node) => node.started ?? 0, text: (node) => (node.started ? since(node.started, model.at) : "–"), numeric: true, wide: true },
      { key: "heard", label: "Heard", value: (node) => node.heard, text: (node) => (node.name === model.about.node ? "now" : `${since(node.heard, model.at)} ago`), numeric: true, wide: true },
    ],
  });
  const losses = new DataTable({
    caption: "Refusals, drops and violations, by node",
    id: (row) => `${row.node} ${row.kind} ${row.what}`,
    sort: { key: "count", down: true },
    size: 20,
    none: empty("Nothing was refused or dropped", ""),
    columns: [
      { key: "node", label: "Node", value: (row) => row.node },
      { key: "what", label: "What", value: (row) => `${row.kind} ${row.what}`, cell: whatCell },
      { key: "count", label: "Count", value: (row) => row.count, numeric: true },
    ],
  });
  root.append(
    el("h1", { text: "Nodes" }), trouble,
    el("div", { class: "tiles" }, ...tiles.map((one) => one.element)),
    card("Nodes of the domain", el("p", { class: "muted", text: `Each node reports its figures every ${GROUP_RENEWAL} seconds. A node that is gone is listed for ${GROUP_PATIENCE / 60} minutes.` }), table.element),
    card("Engine", engine),
    card("Refusals and drops, since each node started", losses.element),
  );

  function nodeCell(node) {
    const isHere = node.name === model.about.node;
    return el("div", {}, isHere ? el("b", { text: node.name }) : nodeLink(node.name, node.url),
      isHere ? el("p", { class: "muted small", text: "this dashboard" }) : null,
      el("p", { class: "mono muted small epoch", text: `epoch ${node.boot}` }));
  }

  function whatCell(row) {
    const means = row.kind === "Dropped" ? DROPS[row.what] : "";
    return el("div", {}, el("p", {}, `${row.kind}: `, el("b", { text: row.what })), means ? el("p", { class: "muted small", text: means }) : null);
  }

  return {
    update() {
      const nodes = [...model.nodes.values()];
      const own = model.nodes.get(model.about.node);
      const live = nodes.filter((node) => node.figures);
      const total = (name) => live.reduce((sum, node) => sum + (node.rates?.[name] ?? 0), 0);
      const texts = [count(live.filter((node) => node.state === "member").length), count(live.reduce((sum, node) => sum + figure(node, "sessions.open"), 0)),
        rate(total("received")), rate(total("refused")), rate(total("dropped"))];
      tiles.forEach(({ set }, place) => set(texts[place]));
      table.set(nodes);
      losses.set(live.flatMap((node) => Object.entries(PREFIXES).flatMap(([prefix, split]) =>
        model.parts(prefix, node.counts).map(([name, number]) => {
          const [kind, what] = split(name);
          return { node: node.name, kind, what, count: number };
        }))));
      const problem = own?.engine?.problem ?? "";
      trouble.hidden = !problem;
      say(trouble, problem && `This node cannot use the engine: ${problem}. It does not know how the other nodes are.`);
      const now = (name) => model.figures.get(name);
      say(engine, `${own?.engine?.up ? "This node reaches the engine" : "This node does not reach the engine"}: ${plural(now("engine_outages"), "outage", "outages")} since it started. It knows ${plural(now("group_rows"), "row", "rows")}; ${plural(now("group_rows_waiting"), "row waits", "rows wait")} to be written, ${plural(now("group_messages_waiting"), "message waits", "messages wait")} to go to other nodes.`);
    },
  };
}
