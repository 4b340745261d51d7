/** Registrations, policies and the catalogue; nothing here can be changed. */

import { DataTable, badge, card, clock, count, el, empty, field, plural, say, shortName } from "./dom.js";
import { runtimeCell } from "./fleet.js";

const DENYING = new Set(["deny", "block"]);

/** The rules of a policy set as rows, in the order of the document. */
function rulesOf(document) {
  const rows = [];
  for (const policy of document.policies ?? []) {
    for (const rule of policy.rules ?? []) {
      const condition = rule.condition && Object.keys(rule.condition).length ? JSON.stringify(rule.condition) : "always";
      rows.push({ place: rows.length, policy: policy.id, rule: rule.id, effect: rule.effect, reason: rule.reason, condition });
    }
  }
  return rows;
}

export function openRecords(root, { model, connection, announce }) {
  root.append(el("h1", { text: "Records" }), registrations(), policies(), catalogue());

  function registrations() {
    const search = el("input", { type: "search", id: "record-search", autocomplete: "off", placeholder: "part of an address" });
    const summary = el("p", { class: "muted" });
    const table = new DataTable({
      caption: "Registrations of the domain",
      id: (row) => row.url,
      sort: { key: "touched", down: true },
      size: 20,
      none: empty("No registration was found", "Hyperties and data objects appear here when runtimes register them."),
      columns: [
        { key: "url", label: "Registered", value: (row) => row.url, cell: (row) => recordCell(row) },
        { key: "status", label: "Status", value: (row) => row.status, cell: (row) => badge(row.status) },
        { key: "runtime", label: "Runtime", value: (row) => row.runtime, cell: (row) => runtimeCell(row.runtime), wide: true },
        { key: "touched", label: "Last sign of life", value: (row) => row.touched, cell: (row) => el("time", { text: clock(row.touched) }), numeric: true, wide: true },
      ],
    });
    const form = el("form", { class: "filters", role: "search" }, field("Search", search), el("button", { type: "submit", text: "Find" }));
    async function look(isAsked) {
      if (!model.about.records) {
        say(summary, "The registrations are in a service behind this node.");
        return;
      }
      try {
        const answer = await connection.ask("registrations", { q: search.value.trim() });
        table.set(answer.records);
        say(summary, `${count(answer.found)} of ${count(answer.total)} registrations${answer.found > answer.records.length ? `; the newest ${count(answer.records.length)} are listed` : ""}.`);
        if (isAsked) announce(`${count(answer.found)} registrations`);
      } catch (error) {
        say(summary, error.message);
      }
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      look(true);
    });
    look(false);
    return card("Registrations", form, summary, table.element);
  }

  function recordCell(row) {
    const fields = [["address", row.url], ...Object.entries(row.value)];
    return el("details", { class: "record" }, el("summary", {}, el("span", { class: "record-name", text: shortName(row.url) }), " ", el("span", { class: "runtime-address", text: row.url })),
      el("dl", { class: "facts" }, ...fields.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { class: "mono", text: typeof value === "string" ? value : JSON.stringify(value) })))));
  }

  function policies() {
    if (!model.about.policies) {
      return card("Policies", empty("This node has no policy files", "Every message of a session that owns its sender is permitted."));
    }
    const place = el("div", {}, el("p", { class: "muted", text: "Reading the policies…" }));
    connection.ask("policies").then((book) => {
      place.replaceChildren(
        el("p", { class: "muted", text: `Version ${book.version}. Sets are combined by ${book.combining}; if none applies, the decision is ${book.default}.` }),
        ...(book.sets.length ? book.sets.map(policySet) : [empty("There is no policy set", "The default decides about every message.")]));
    }).catch((error) => place.replaceChildren(el("p", { class: "error", text: error.message })));
    return card("Policies", place);
  }

  function policySet(one) {
    const rules = plural(one.rules, "rule", "rules");
    const table = new DataTable({
      caption: `Rules of ${one.id}`,
      id: (row) => row.place,
      size: 20,
      columns: [
        { key: "place", label: "Rule", value: (row) => row.place, cell: (row) => el("span", { class: "mono", text: `${row.policy} / ${row.rule}` }), tight: true },
        { key: "effect", label: "Effect", value: (row) => row.effect, cell: (row) => el("span", { class: "badge", "data-tone": DENYING.has(row.effect) ? "bad" : "good", text: row.effect }), tight: true },
        { key: "condition", label: "Condition", value: (row) => row.condition, cell: (row) => el("div", {}, el("p", { class: "mono", text: row.condition }), row.reason ? el("p", { class: "muted small", text: row.reason }) : null) },
      ],
    });
    table.set(rulesOf(one.document));
    return el("details", { class: "record", open: true },
      el("summary", {}, el("b", { text: one.id }), " ", el("span", { class: "muted", text: `${one.version ? `version ${one.version}, ` : ""}${rules}, ${one.source}` })),
      table.element,
      el("details", { class: "record" }, el("summary", { text: "The whole set" }), el("pre", { tabindex: "0", role: "region", "aria-label": `The set ${one.id}`, text: JSON.stringify(one.document, null, 2) })));
  }

  function catalogue() {
    const place = el("div", {}, el("p", { class: "muted", text: "Reading the catalogue…" }));
    if (!model.about.catalogue) {
      place.replaceChildren(empty("This node serves no catalogue", "Start it with the directory of a catalogue to publish descriptors of stubs and hyperties."));
    } else {
      connection.read("/.well-known/actors-catalogue.json").then((answer) => answer.json()).then((listing) => {
        const table = new DataTable({
          caption: "Descriptors that the catalogue lists",
          id: (row) => `${row.type} ${row.name}`,
          size: 20,
          none: empty("The catalogue lists nothing", "What is published with stub publish appears here."),
          columns: [
            { key: "name", label: "Name", value: (row) => String(row.name) },
            { key: "type", label: "Type", value: (row) => String(row.type) },
          ],
        });
        table.set(listing.entries ?? []);
        place.replaceChildren(el("p", { class: "muted", text: `Published for ${model.about.catalogue}.` }), table.element);
      }).catch((error) => place.replaceChildren(el("p", { class: "error", text: `The catalogue cannot be read: ${error.message}` })));
    }
    return card("Catalogue", place);
  }
  return {};
}
