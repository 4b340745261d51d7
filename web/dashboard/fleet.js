/** All runtimes of the node, and its last events. */

import { DataTable, Plot, badge, card, clock, count, el, empty, field, plural, rate, runtimeLink, say, shortName, tile } from "./dom.js";

const NEWS = 12;

export function openFleet(root, { model, announce }) {
  const tiles = {
    open: notedTile("Runtimes online"), detached: notedTile("Detached"), received: plottedTile("Messages per second"),
    refused: plottedTile("Refused per second"), dropped: plottedTile("Dropped per second"),
  };
  const search = el("input", { type: "search", id: "fleet-search", placeholder: "Part of an address", autocomplete: "off", oninput: filter });
  const state = el("select", { id: "fleet-state", onchange: filter },
    el("option", { value: "", text: "Every state" }), el("option", { value: "open", text: "Open" }), el("option", { value: "detached", text: "Detached" }));
  const table = new DataTable({
    caption: "Runtimes with a session at this node",
    id: (row) => row.runtime,
    sort: { key: "since", down: true },
    none: empty("No runtime is connected", "Runtimes appear here as soon as they open a session at this node."),
    columns: [
      { key: "runtime", label: "Runtime", value: (row) => row.runtime, cell: (row) => runtimeCell(row.runtime) },
      { key: "state", label: "State", value: (row) => row.state, cell: (row) => badge(row.state), tight: true },
      { key: "form", label: "Form", value: (row) => row.form || "–", wide: "extra", tight: true },
      { key: "link", label: "Link", value: (row) => row.link || "–", wide: "extra", tight: true },
      { key: "since", label: "Since", value: (row) => row.since, text: (row) => clock(row.since), cell: (row) => el("span", { text: clock(row.since) }), numeric: true },
      { key: "addresses", label: "Addresses", value: (row) => row.addresses, numeric: true, wide: true },
      { key: "paths", label: "Paths", value: (row) => row.paths, numeric: true, wide: true },
      { key: "moves", label: "Moves", value: (row) => row.moves, numeric: true, wide: true },
    ],
  });
  const more = el("p", { class: "muted" });
  const news = el("ol", { class: "news" });
  const quiet = empty("Nothing happened yet", "Sessions, registrations and stubs that move are listed here.");
  root.append(
    el("h1", { text: "Fleet" }),
    el("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.element)),
    el("div", { class: "split" },
      card("Runtimes", el("div", { class: "filters" }, field("Search", search), field("State", state)), table.element, more),
      card("Latest events", news, quiet)),
  );

  function wanted() {
    const text = search.value.trim().toLowerCase();
    return [...model.rows.values()].filter((row) =>
      (!state.value || row.state === state.value) && (!text || row.runtime.toLowerCase().includes(text)));
  }

  function filter() {
    table.page = 0;
    const rows = wanted();
    table.set(rows);
    announce(plural(rows.length, "runtime", "runtimes"));
  }

  return {
    update() {
      tiles.open.set(count(model.figures.get("sessions.open")));
      tiles.open.note(`${plural(model.figures.get("links"), "link", "links")}, ${count(model.figures.get("links_without_session"))} without a session`);
      tiles.detached.set(count(model.figures.get("sessions.detached")));
      tiles.detached.note(plural(model.figures.get("outbox_messages"), "message waits to be written", "messages wait to be written"));
      for (const name of ["received", "refused", "dropped"]) {
        tiles[name].set(rate(model.rate(name)));
        tiles[name].plot.draw(model.rates[name]);
      }
      table.set(wanted());
      say(more, [
        model.total > model.rows.size && `${count(model.total - model.rows.size)} more runtimes are counted, but not listed.`,
        elsewhere(model),
      ].filter(Boolean).join(" "));
      const last = model.events.filter((event) => event.kind !== "row").slice(-NEWS).reverse();
      quiet.hidden = Boolean(last.length);
      if (news.dataset.last !== String(last[0]?.n ?? "")) {
        news.dataset.last = last[0]?.n ?? "";
        news.replaceChildren(...last.map(eventLine));
      }
    },
  };
}

/** How many runtimes other nodes have, if there are any. */
function elsewhere(model) {
  const others = model.others();
  const sessions = others.reduce((sum, node) => sum + model.sum("sessions.", node.counts), 0);
  return others.length ? `${plural(sessions, "runtime has its session", "runtimes have their sessions")} at ${plural(others.length, "other node", "other nodes")}.` : "";
}

function notedTile(label) {
  const note = el("p", { class: "tile-note muted" });
  return { ...tile(label, note), note: (text) => say(note, text) };
}

function plottedTile(label) {
  const plot = new Plot(`${label}, last two minutes`);
  return { ...tile(label, plot.element), plot };
}

/** A runtime by its name, its whole address below. */
export function runtimeCell(runtime) {
  return el("a", { class: "runtime", href: runtimeLink(runtime) },
    el("span", { class: "runtime-name", text: shortName(runtime) }), " ",
    el("span", { class: "runtime-address", text: runtime.slice(0, runtime.lastIndexOf("/")) || runtime }));
}

const CAUSES = { "[*]": "new" };

/** An event in a line. */
export function eventLine(event) {
  const about = event.runtime || event.key.split("|")[0];
  const name = event.runtime
    ? el("a", { href: runtimeLink(event.runtime), text: shortName(event.runtime) }) : el("span", { text: shortName(about) });
  const old = CAUSES[event.old] ?? event.old;
  return el("li", { "data-kind": event.kind },
    el("time", { text: clock(event.at) }),
    el("span", { class: "news-text" }, name, " ", el("span", { class: "muted", text: event.what }),
      " ", old, " ", el("span", { "aria-hidden": "true", text: "→" }), el("span", { class: "hidden", text: " to " }), " ", badge(event.kind === "fault" ? "refused step" : event.new)));
}
