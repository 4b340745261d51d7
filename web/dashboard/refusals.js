/** Why was this refused? By the id of a message, or the address of one of its ends. */

import { REFUSALS_KEPT } from "../src/constants.js";
import { DataTable, card, clock, count, el, empty, field, plain, plural, runtimeLink, say, shortName } from "./dom.js";

export const GROUNDS = {
  form: ["Form", "The message does not have the form that the protocol prescribes."],
  session: ["Session", "The link has no session, or its credentials were not accepted."],
  ownership: ["Ownership", "The session does not own the address that the message names as its sender."],
  loop: ["Loop", "The message has already crossed this node, or too many stubs."],
  policy: ["Policy", "A rule of the policies of this node denied it."],
  limit: ["Limit", "A limit of this node was reached; see the limits in its configuration."],
  route: ["Route", "There is no receiver: no session owns the address, and nobody subscribes to it."],
  service: ["Service", "The part of the node that was asked refused it."],
};
export const DROPS = {
  unmatched: "It answers no open request.", "late-response": "It came after its request was given up.", loop: "It came back to a place that it had crossed.",
  "forged-status": "Only the stub itself may report its status.", "no-target": "Nobody receives messages to this address.", overflow: "Too many messages waited for its receiver.",
  unsubscribed: "Its receiver does not subscribe any more.", "session-gone": "The session of its receiver, or of its sender, was over.", malformed: "It does not have the form that the protocol prescribes.",
  duplicate: "It came a second time.", overtaken: "A newer one had arrived before it.", denied: "A policy denied it.", "unknown-source": "The session does not own the address of its sender.", crashed: "The part that had it crashed.",
};

export function refusalTable(caption, none) {
  return new DataTable({
    caption,
    id: (row) => `${row.node ?? ""} ${row.at} ${row.id} ${row.from}`,
    sort: { key: "at", down: true },
    isEven: true,
    none,
    size: 10,
    columns: [
      { key: "id", label: "Message", value: (row) => row.id, cell: (row) => messageCell(row) },
      { key: "ground", label: "Refused by", value: (row) => row.ground, cell: (row) => groundCell(row) },
      { key: "at", label: "Time", value: (row) => row.at, cell: (row) => el("time", { text: clock(row.at) }), numeric: true, wide: true },
    ],
  });
}

function messageCell(row) {
  return el("div", { class: "message" },
    el("p", {}, el("b", { class: "mono", text: `#${row.id}` }), " ", row.type || "request"),
    el("p", { class: "small narrow" }, el("time", { text: clock(row.at) })),
    el("p", { class: "mono small", text: `from ${row.from}` }),
    el("p", { class: "mono small", text: `to ${row.to}` }),
    row.by ? el("p", { class: "small" }, "over ", sender(row.by)) : null,
    row.node ? el("p", { class: "small" }, "at the node ", el("b", { text: row.node })) : null);
}

/** The session of a runtime, or a link that has none. */
function sender(by) {
  if (!by.includes("://")) return el("span", { class: "mono", text: by });
  return el("a", { href: runtimeLink(by), text: `the session of ${shortName(by)}` });
}

function groundCell(row) {
  const [title, sentence] = GROUNDS[row.ground] ?? [row.ground, ""];
  return el("div", { class: "ground" },
    el("p", {}, el("span", { class: "badge", "data-tone": "bad", text: `${row.code} ${title}` })),
    el("p", { text: row.why }),
    row.rule ? el("p", {}, "Rule ", el("code", { text: row.rule })) : null,
    el("p", { class: "muted small", text: sentence }));
}

export function openRefusals(root, { model, connection, announce, argument }) {
  const id = el("input", { type: "search", id: "refusal-id", inputmode: "numeric", autocomplete: "off", placeholder: "such as 42", value: argument });
  const text = el("input", { type: "search", id: "refusal-text", autocomplete: "off", placeholder: "part of an address" });
  const form = el("form", { class: "filters", role: "search" },
    field("Message id", id), field("Address", text),
    el("button", { type: "submit", text: "Explain" }));
  const error = el("p", { class: "error", role: "alert" });
  const refusals = refusalTable("Refused messages, the newest first",
    empty("No refusal is remembered for this", `The node remembers the last ${count(REFUSALS_KEPT)} refusals. A message that it delivered was refused by its receiver, if at all.`));
  const drops = new DataTable({
    caption: "Dropped messages, the newest first",
    id: (row) => `${row.node ?? ""} ${row.at} ${row.id} ${row.from}`,
    sort: { key: "at", down: true },
    isEven: true,
    size: 10,
    none: empty("No drop is remembered for this", "Only messages without an answer are dropped; each is counted with its reason."),
    columns: [
      { key: "id", label: "Message", value: (row) => row.id, cell: messageCell },
      { key: "reason", label: "Reason", value: (row) => row.reason, cell: (row) => el("div", {}, el("p", {}, el("span", { class: "badge", "data-tone": "open", text: row.reason })), el("p", { class: "muted small", text: DROPS[row.reason] ?? "" })) },
      { key: "where", label: "Part", value: (row) => row.where, wide: true },
      { key: "at", label: "Time", value: (row) => row.at, cell: (row) => el("time", { text: clock(row.at) }), numeric: true, wide: true },
    ],
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    look(true);
  });
  const elsewhere = el("p", { class: "muted", hidden: !model.about.node, text: "Shown is what this node refused and dropped. To explain a message, the other nodes are asked, too." });
  let others = { refusals: [], drops: [] };
  /** The last query; a text typed later counts once it is submitted. */
  let wanted = { id: "", q: "" };
  root.append(el("h1", { text: "Why was this refused?" }), card("Find a message", form, error, elsewhere),
    card("Refusals", refusals.element), card("Drops", drops.element));

  /** Ask the other nodes for their own refusals; only when the user submits a query. */
  async function askOthers() {
    others = { refusals: [], drops: [] };
    if (!model.about.node) return;
    let answers;
    try {
      answers = Object.entries((await connection.ask("elsewhere", wanted)).nodes);
    } catch (problem) {
      say(elsewhere, `Shown is what this node refused and dropped; the other nodes were not asked: ${problem.message}`);
      return;
    }
    const silent = [];
    for (const [node, found] of answers) {
      if (!found) silent.push(node);
      for (const kind of Object.keys(others)) others[kind].push(...(found?.[kind] ?? []).map((row) => ({ ...row, node })));
    }
    const all = `Shown is what this node and ${plural(answers.length - silent.length, "other", "others")} refused and dropped.`;
    say(elsewhere, silent.length ? `${all} There is no answer from ${silent.join(", ")}.` : all);
  }

  async function look(isAsked) {
    try {
      if (isAsked) {
        wanted = { id: id.value.trim().replace(/^#/, ""), q: text.value.trim() };
        await askOthers();
      }
      const answer = await connection.ask("refused", wanted);
      error.textContent = "";
      const [refused, dropped] = [[...answer.refusals, ...others.refusals], [...answer.drops, ...others.drops]];
      refusals.set(refused);
      drops.set(dropped);
      if (isAsked) announce(`${refused.length} refusals, ${dropped.length} drops`);
    } catch (problem) {
      error.textContent = plain(problem.message);
    }
  }
  look(Boolean(argument));
  let seen = null;
  return {
    /** Query again when more was refused or dropped. */
    update() {
      const now = model.sum("refused.") + model.sum("dropped.");
      if (seen !== null && now !== seen) look(false);
      seen = now;
    },
  };
}
