/** Rates, refusals and drops by reason, and consumers that are too slow. */

import { DataTable, Plot, card, count, countTable, el, empty, plural, rate, say } from "./dom.js";
import { runtimeCell } from "./fleet.js";
import { GROUNDS } from "./refusals.js";

const PLOTS = {
  received: "Received", sent: "Sent", admitted: "Admitted", refused: "Refused", dropped: "Dropped",
};
const LISTS = [
  ["Dropped messages, by reason", "dropped.", "No message was dropped"],
  ["Refused messages, by ground", "refused.", "No message was refused"],
  ["Links that ended, by reason", "links_closed.", "No link has ended"],
  ["Refused connections, by reason", "handshakes_refused.", "No connection was refused"],
  ["Logins, by outcome", "logins.", "No runtime has logged in"],
  ["Ended sessions, by state", "sessions_ended.", "No session has ended"],
];

/** A ground with its code, as the view of refusals names it. */
function ground(name) {
  const [kind, code] = name.split(".");
  return `${code} ${GROUNDS[kind]?.[0] ?? kind}`;
}

export function openTraffic(root, { model }) {
  const plots = Object.entries(PLOTS).map(([name, label]) => {
    const plot = new Plot(`${label} messages per second, last two minutes`, 320, 64);
    const value = el("span", { class: "plot-value" });
    const most = el("span", { class: "muted" });
    return { name, plot, value, most, element: el("div", { class: "tile" },
      el("p", { class: "tile-label", text: `${label} per second` }), el("p", { class: "tile-value" }, value), plot.element, el("p", { class: "plot-note" }, most)) };
  });
  const slow = new DataTable({
    caption: "Runtimes for which messages wait",
    id: (row) => `${row[0]} ${row[1]}`,
    sort: { key: "waiting", down: true },
    none: empty("No consumer is slow", "Nothing waits to be written to a link, or for a detached runtime."),
    columns: [
      { key: "runtime", label: "Runtime", value: (row) => row[0] || "no session yet", cell: (row) => (row[0] ? runtimeCell(row[0]) : el("span", { text: "no session yet" })) },
      { key: "link", label: "Link", value: (row) => row[1] || "detached" },
      { key: "waiting", label: "Waiting messages", value: (row) => row[2], numeric: true },
    ],
  });
  const waiting = el("p", { class: "muted" });
  const abroad = el("p");
  const lists = LISTS.map(([title, prefix, none]) =>
    ({ prefix, table: countTable(title, none, "Reason", prefix === "refused." ? (row) => ground(row[0]) : undefined) }));
  root.append(
    el("h1", { text: "Traffic" }),
    el("div", { class: "tiles plots" }, ...plots.map((one) => one.element)),
    card("Slow consumers", waiting, slow.element),
    card("Stubs of other domains", abroad),
    el("div", { class: "columns" }, ...lists.map(({ table }, place) => card(LISTS[place][0], table.element))),
  );
  return {
    update() {
      for (const { name, plot, value, most } of plots) {
        plot.draw(model.rates[name]);
        say(value, rate(model.rate(name)));
        say(most, `at most ${rate(Math.max(0, ...model.rates[name]))}`);
      }
      slow.set(model.slow);
      say(waiting, `${plural(model.figures.get("outbox_messages"), "message waits", "messages wait")} for links, ${plural(model.figures.get("outbox_bytes"), "byte", "bytes")} in all.`);
      const figure = (name) => count(model.figures.get(name));
      say(abroad, `${figure("foreign_stubs")} run; ${figure("foreign_stubs_opened")} were started and ${figure("foreign_stubs_gone")} have ended since the node started.`);
      for (const { prefix, table } of lists) table.set(model.parts(prefix));
    },
  };
}
