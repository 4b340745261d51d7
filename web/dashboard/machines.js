/** Each machine as it is drawn, with the number of entities in each state and the heat of each edge. */

import { DataTable, count, el, empty, say } from "./dom.js";
import { Picture } from "./picture.js";

const AT_NODE = /message node|domain registry/;

export function openMachines(root, { model, connection, argument }) {
  const machines = model.about.machines;
  const busiest = [...machines].sort((a, b) => moves(model, b) - moves(model, a))[0];
  const chosen = machines.find((one) => one.name === argument) ?? machines.find((one) => one.name === "session") ?? busiest;
  const lists = [["At the node", []], ["In runtimes", []]];
  const counts = new Map();
  for (const machine of machines) {
    const number = el("span", { class: "machine-count" });
    counts.set(machine.name, number);
    lists[AT_NODE.test(machine.owner) ? 0 : 1][1].push(el("li", {}, el("a", {
      href: `#/machines/${machine.name}`, "aria-current": machine === chosen ? "true" : null,
    }, el("span", { text: machine.name.replaceAll("_", " ") }), number)));
  }
  const drawing = el("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": `Drawing of ${chosen.name}` });
  const total = el("p", { class: "muted" });
  const states = new DataTable({
    caption: "States",
    id: (row) => row.name,
    columns: [
      { key: "place", label: "State", value: (row) => row.place, cell: (row) => el("span", { text: row.name }), tight: true },
      { key: "count", label: "Entities", value: (row) => row.count, numeric: true },
      { key: "meaning", label: "Meaning", value: (row) => row.meaning, wide: true },
    ],
  });
  const edges = new DataTable({
    caption: "Steps taken since the node started",
    id: (row) => row.id,
    sort: { key: "count", down: true },
    columns: [
      { key: "cause", label: "Trigger", value: (row) => row.cause },
      { key: "from", label: "From", value: (row) => row.old },
      { key: "to", label: "To", value: (row) => row.now },
      { key: "count", label: "Steps", value: (row) => row.count, numeric: true },
    ],
  });
  root.append(
    el("h1", { text: "Machines" }),
    el("div", { class: "machines" },
      el("nav", { class: "card machine-lists", "aria-label": "Machines" },
        ...lists.flatMap(([title, items]) => [el("h2", { text: title }), el("ul", { class: "machine-list" }, ...items)])),
      el("section", { class: "card" },
        el("h2", { text: chosen.name.replaceAll("_", " ") }),
        el("p", { class: "muted", text: chosen.owner }), total, drawing,
        el("p", { class: "legend muted", text: "The number at a state is how many entities are there; at a final state, how many came there since the node started. The thicker an edge, the more often it was taken; edges taken just now are highlighted." }),
        el("div", { class: "tables" }, states.element, edges.element))),
  );
  root.querySelector(".machine-list [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  let picture = null;
  let last = new Map();
  connection.read(`machines/${chosen.name}.svg`).then(async (answer) => {
    picture = new Picture(await answer.text(), chosen);
    drawing.replaceChildren(picture.element);
    picture.measure();
    update();
  }).catch(() => drawing.replaceChildren(empty("The drawing is not there", "The node does not serve it.")));

  function update() {
    for (const machine of machines) {
      const { here } = model.population(machine);
      const number = counts.get(machine.name);
      say(number, here ? count(here) : "");
    }
    const heat = model.machines.get(chosen.name);
    const { here, gone } = model.population(chosen);
    say(total, heat && (here || gone || heat.edges.size)
      ? `${count(here)} now, ${count(gone)} ended since the node started.`
      : "No entity of this machine has moved at this node. Machines of runtimes move in the runtimes; their own traces show them.");
    states.set(chosen.states.map((state, place) => ({ ...state, place, count: heat?.states[state.name] ?? 0 })));
    const taken = [...(heat?.edges ?? new Map())].map(([id, edge]) => ({ id, ...edge }));
    edges.set(taken);
    picture?.show(heat, last);
    last = new Map(taken.map((edge) => [edge.id, edge.count]));
  }
  return { update };
}

function moves(model, machine) {
  let sum = 0;
  for (const edge of model.machines.get(machine.name)?.edges.values() ?? []) sum += edge.count;
  return sum;
}
