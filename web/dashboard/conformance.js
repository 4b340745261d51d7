/** Whether the node keeps to its machines and the claims of the protocol: findings of its monitor. */

import { DataTable, card, clock, count, countTable, el, empty, say } from "./dom.js";
import { eventLine } from "./fleet.js";

export function openConformance(root, { model, connection }) {
  const verdict = el("section", { class: "card verdict" });
  const word = el("p", { class: "verdict-word" });
  const sentence = el("p", {});
  verdict.append(word, sentence);
  const tables = [
    ["Steps that no table declares, by machine", "violations.", "No undeclared step was tried"],
    ["Broken claims", "broken_claims.", "No claim is broken"],
    ["Restarts of parts of the node", "restarts.", "No part was started again"],
  ].map(([caption, prefix, none]) => ({ prefix, table: countTable(caption, none), caption }));
  const findings = new DataTable({
    caption: "Broken claims, the newest first",
    id: (row) => `${row.at} ${row.claim} ${row.about}`,
    sort: { key: "at", down: true },
    size: 10,
    none: empty("The monitor found nothing", "The last 64 broken claims are listed here with what they are about."),
    columns: [
      { key: "claim", label: "Claim", value: (row) => row.claim, tight: true },
      { key: "about", label: "About", value: (row) => row.about, cell: (row) => el("span", { class: "mono", text: row.about }) },
      { key: "expected", label: "Expected", value: (row) => row.expected, wide: true },
      { key: "at", label: "Time", value: (row) => row.at, cell: (row) => el("time", { text: clock(row.at) }), numeric: true },
    ],
  });
  const faults = el("ol", { class: "news" });
  const resets = el("p", { class: "muted" });
  root.append(el("h1", { text: "Conformance" }), verdict,
    el("div", { class: "columns" }, ...tables.map(({ caption, table }) => card(caption, table.element))),
    card("Findings of the monitor", findings.element, resets),
    card("Refused steps, the newest first", faults));

  async function look() {
    try {
      findings.set((await connection.ask("findings")).findings);
    } catch {
      // The header says that the connection is lost.
    }
  }
  findings.set([]);
  let seen = null;
  return {
    update() {
      const steps = model.sum("violations.");
      const claims = model.sum("broken_claims.");
      if (claims !== seen) look();
      seen = claims;
      const isBad = steps + claims > 0;
      verdict.dataset.tone = isBad ? "bad" : model.about.monitored ? "good" : "open";
      say(word, isBad ? "Violations found" : model.about.monitored ? "Conformant so far" : "Steps are conformant; claims are not judged");
      say(sentence, isBad
        ? `${count(steps)} steps were tried that no machine declares, ${count(claims)} claims are broken. Each is a bug: the log has the details.`
        : model.about.monitored
          ? "Every step that this node took is declared by its machine, and the monitor found no broken claim."
          : "Every step that this node took is declared by its machine. Start the node with --monitor to judge the claims of the protocol while it runs.");
      for (const { prefix, table } of tables) table.set(model.parts(prefix));
      const faulty = model.events.filter((event) => event.kind === "fault").slice(-20).reverse();
      faults.replaceChildren(...(faulty.length ? faulty.map(eventLine) : [el("li", { class: "muted", text: "None." })]));
      const forgotten = model.figures.get("monitor_resets") ?? 0;
      say(resets, forgotten ? `The monitor forgot the past of ${count(forgotten)} checks to bound its memory.` : "");
    },
  };
}
