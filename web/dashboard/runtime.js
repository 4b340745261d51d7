/** One runtime: its session, its stub, its connection, and the story of it. */

import { badge, card, clock, count, el, empty, nodeLink, runtimeLink, say, shortName } from "./dom.js";
import { Story } from "./story.js";
import { refusalTable } from "./refusals.js";

const PERIOD = 1000;

export function openRuntime(root, { model, connection, announce, argument: runtime }) {
  const state = el("span", { class: "state" });
  const session = facts(["State", "Since", "User", "Messages that wait for it"]);
  const stub = facts(["Address", "Wire form"]);
  const link = facts(["Link", "Host", "Messages that wait to be written"]);
  const addresses = el("ul", { class: "addresses" });
  const paths = el("ul", { class: "addresses" });
  const notice = el("p", { class: "notice", hidden: true });
  const refusals = refusalTable("Messages of this runtime that were refused", empty("Nothing of it was refused", ""));
  const story = new Story(runtime, announce);
  const cards = [
    el("div", { class: "columns" },
      card("Session", session.element), card("Stub", stub.element), card("Connection", link.element)),
    el("div", { class: "columns" }, card("Addresses", addresses), card("Paths it subscribes to", paths)),
  ];
  root.append(
    el("p", { class: "back" }, el("a", { href: "#/fleet", text: "Fleet" })),
    el("h1", {}, el("span", { text: shortName(runtime) }), " ", state),
    el("p", { class: "mono muted", text: runtime }), notice,
    cards[0], card("Story of the connection", story.element), cards[1],
    card("Refusals", refusals.element),
  );

  async function look() {
    try {
      const answer = await connection.ask("runtime", { runtime });
      if (!answer.state) {
        away(answer.elsewhere);
        return;
      }
      notice.hidden = true;
      for (const part of cards) part.hidden = false;
      state.replaceChildren(badge(answer.state));
      session.set([answer.state, clock(model.rows.get(runtime)?.since ?? model.at),
        answer.user ? `${answer.user} (digest)` : "no login", count(answer.waiting)]);
      stub.set([answer.stub, answer.link?.form ?? "–"]);
      link.set([answer.link?.name ?? "none: it is detached", answer.link?.host || "–", count(answer.link?.waiting)]);
      list(addresses, answer.addresses, answer.counts.addresses, "It has no addresses besides its own.");
      list(paths, answer.paths, answer.counts.paths, "It subscribes to nothing.");
    } catch {
      // The header says that the connection is lost.
    }
  }

  /** Show that there is no session, or that another node has it and this one knows no more. */
  function away(elsewhere) {
    notice.hidden = false;
    for (const part of cards) part.hidden = Boolean(elsewhere);
    state.replaceChildren(badge(elsewhere ? "elsewhere" : "closed"));
    notice.replaceChildren(...(elsewhere
      ? ["The session of this runtime is at the node ", nodeLink(elsewhere.node, elsewhere.url, runtimeLink(runtime)), ", which knows its link, addresses and messages. Shown is what happened here."]
      : ["This runtime has no session now. Its story is kept for a while."]));
  }

  async function tell() {
    try {
      const news = await connection.ask("story", { runtime, after: story.lastEvent, hop: story.lastHop });
      story.take(news);
    } catch {
      // The header says that the connection is lost.
    }
  }

  async function refused() {
    try {
      refusals.set((await connection.ask("refused", { q: runtime })).refusals);
    } catch {
      // The same.
    }
  }
  look();
  tell();
  refused();
  let count_ = 0;
  const timer = setInterval(() => {
    if (document.hidden) return;
    tell();
    count_ += 1;
    if (count_ % 5 === 0) refused();
  }, PERIOD);
  let seen = null;
  return {
    update() {
      const row = model.rows.get(runtime);
      const now = row ? JSON.stringify(row) : "";
      if (seen !== null && now !== seen) look();
      seen = now;
    },
    close() {
      clearInterval(timer);
      story.close();
    },
  };
}

function facts(names) {
  const values = names.map(() => el("dd", { text: "–" }));
  return {
    element: el("dl", { class: "facts" }, ...names.map((name, place) => el("div", {}, el("dt", { text: name }), values[place]))),
    set: (texts) => texts.forEach((text, place) => say(values[place], text)),
  };
}

function list(element, texts, total, none) {
  const items = texts.map((text) => el("li", { class: "mono", text }));
  if (total > texts.length) items.push(el("li", { class: "muted", text: `and ${count(total - texts.length)} more` }));
  element.replaceChildren(...(items.length ? items : [el("li", { class: "muted", text: none })]));
}
