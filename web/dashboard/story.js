/** The story of one connection: steps of its session, rows of tables, and messages while it is watched. */

import { clock, count, el, empty, say, shortName, svg } from "./dom.js";

const KEPT = 3000;
const ROWS = 18;
const LANES = 4;
const LINE = 30;
const TOP = 34;
const LEFT = 74;
const NARROW = { below: 480, left: 58, lane: 60 };
const LETTER = 7.2;

const OPS = {
  rcv: "received", admit: "admitted", deny: "refused", deliver: "given to a part of the node", xmit: "sent", publish: "published to subscribers",
  relay: "relayed to a back end", queue: "waits for the runtime", flush: "taken from the queue", synth: "answered by the node", drop: "dropped", callback: "answer taken",
};

export class Story {
  constructor(runtime, announce) {
    this.runtime = runtime;
    this.announce = announce;
    this.lastEvent = 0;
    this.lastHop = 0;
    this.items = [];
    this.at = 0;
    this.range = el("input", { type: "range", id: "story-at", min: 0, max: 0, value: 0, oninput: () => this.#go(Number(this.range.value)) });
    this.follow = el("input", { type: "checkbox", id: "story-follow", checked: true, onchange: () => this.#follow() });
    this.now = el("output", { for: "story-at", class: "story-now" });
    this.note = el("p", { class: "muted" });
    this.picture = svg("svg", { class: "sequence", role: "img", "aria-label": "Sequence diagram; the list below says the same" });
    this.frame = el("div", { class: "sequence-frame", tabindex: "0", role: "region", "aria-label": "Sequence diagram" }, this.picture);
    this.list = el("ol", { class: "story-list" });
    this.none = empty("Nothing has happened yet", "Steps of the session and changes of its addresses and paths appear here, and messages from now on.");
    this.player = el("div", { class: "player" },
      el("label", { for: "story-at", text: "Position" }), this.range, this.now,
      el("label", { class: "check" }, this.follow, " Follow"));
    this.element = el("div", { class: "story" }, this.note, this.none, this.player, el("div", { class: "stage" }, this.frame, this.list));
    this.watcher = new ResizeObserver(() => this.#render());
    this.watcher.observe(this.element);
  }

  close() {
    this.watcher.disconnect();
  }

  /** Take the new events, hops and messages. */
  take({ events, hops, watched }) {
    say(this.note, watched
      ? "Messages are shown while this page is open: their heads only, never a body."
      : "Messages are not shown: the connections that are watched at once are as many as allowed.");
    if (!events.length && !hops.length) return;
    this.lastEvent = events.at(-1)?.n ?? this.lastEvent;
    this.lastHop = hops.at(-1)?.n ?? this.lastHop;
    const fresh = [...events.map(asEvent), ...hops.map((hop) => asHop(hop))].sort((a, b) => a.at - b.at);
    this.items.push(...fresh);
    this.items.splice(0, this.items.length - KEPT);
    this.range.max = this.items.length - 1;
    if (this.follow.checked) this.at = this.items.length - 1;
    this.range.value = this.at;
    this.#render();
  }

  #go(at) {
    this.at = at;
    this.follow.checked = at === this.items.length - 1;
    this.#render();
  }

  #follow() {
    if (!this.follow.checked) return;
    this.at = this.items.length - 1;
    this.range.value = this.at;
    this.#render();
  }

  #render() {
    const isEmpty = !this.items.length;
    for (const part of [this.player, this.frame, this.list]) part.hidden = isEmpty;
    this.none.hidden = !isEmpty;
    if (isEmpty) return;
    const item = this.items[this.at];
    const words = `${count(this.at + 1)} of ${count(this.items.length)}, ${clock(item.at)}`;
    say(this.now, words);
    this.range.setAttribute("aria-valuetext", `${words}: ${item.text}`);
    const first = Math.max(0, Math.min(this.at - ROWS + 4, this.items.length - ROWS));
    const shown = this.items.slice(first, first + ROWS);
    this.list.replaceChildren(...shown.map((item, place) => el("li", {
      "aria-current": first + place === this.at ? "step" : null, class: first + place > this.at ? "later" : null, value: first + place + 1,
    }, el("time", { text: clock(item.at) }), el("span", { class: "story-text" }, item.text, item.ends ? el("span", { class: "story-ends", text: item.ends }) : null))));
    this.#draw(shown, this.at - first);
  }

  #draw(items, current) {
    const lanes = [this.runtime, ""];
    for (const item of items) {
      for (const end of [item.from, item.to]) {
        if (end !== undefined && !lanes.includes(end) && lanes.length < LANES) lanes.push(end);
      }
    }
    const visible = this.frame.clientWidth || 640;
    const [left, least] = visible < NARROW.below ? [NARROW.left, NARROW.lane] : [LEFT, 96];
    const wide = Math.min(230, Math.max(least, Math.floor((visible - left - 2) / lanes.length)));
    const x = (lane) => left + wide / 2 + wide * Math.max(0, lanes.includes(lane) ? lanes.indexOf(lane) : lanes.length - 1);
    const width = left + wide * lanes.length;
    const height = TOP + LINE * items.length + 14;
    const parts = lanes.flatMap((lane) => [
      svg("line", { class: "lane", x1: x(lane), x2: x(lane), y1: TOP - 8, y2: height }),
      svg("text", { class: "lane-name", x: x(lane), y: 16, "text-anchor": "middle", text: cut(lane ? shortName(lane) : "node", Math.min(18, Math.floor(wide / 7))) }),
    ]);
    items.forEach((item, place) => {
      const group = svg("g", { class: ["happening", item.kind, place === current && "here", place > current && "later"].filter(Boolean).join(" ") });
      group.append(...this.#happening(item, TOP + LINE * place + 16, x, [left, width], place === current));
      parts.push(group);
    });
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.setAttribute("width", width);
    this.picture.setAttribute("height", height);
    this.picture.replaceChildren(...parts);
  }

  /** Return the parts of an arrow, or of a dot; a label stays between the edges of the drawing. */
  #happening(item, y, x, [left, right], isHere) {
    const parts = isHere ? [svg("rect", { class: "cursor", x: 0, y: y - 15, width: "100%", height: LINE })] : [];
    parts.push(svg("text", { class: "at", x: 4, y: y + 4, text: clock(item.at).slice(-8) }));
    if (item.from === undefined || item.from === item.to) {
      const at = x(item.from ?? this.runtime);
      const isBefore = right - at < at - left && right - at < LETTER * item.label.length;
      const room = (isBefore ? at - left : right - at) - 12;
      return [...parts, svg("circle", { cx: at, cy: y, r: 4.5 }), svg("text", {
        class: "label", x: at + (isBefore ? -10 : 10), y: y + 4, "text-anchor": isBefore ? "end" : "start",
        text: cut(item.label, Math.min(34, Math.floor(room / LETTER))),
      })];
    }
    const [from, to] = [x(item.from), x(item.to)];
    const side = to > from ? -1 : 1;
    const middle = (from + to) / 2;
    const room = Math.max(Math.abs(to - from), 2 * Math.min(middle - left, right - middle));
    return [
      ...parts,
      svg("line", { class: "arrow", x1: from, x2: to + 5 * side, y1: y, y2: y }),
      svg("path", { class: "head", d: `M${to},${y}l${8 * side},-4v8z` }),
      svg("text", { class: "label", x: middle, y: y - 5, "text-anchor": "middle", text: cut(item.label, Math.floor(room / LETTER)) }),
    ];
  }
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function asEvent(event) {
  if (event.kind === "row") {
    const [label, verb] = [event.what === "subs" ? "path" : "address", event.new === "add" ? "gets" : "loses"];
    return { at: event.at, kind: "row", label: `${event.new === "add" ? "+" : "−"} ${label} ${shortName(event.key)}`, text: `It ${verb} the ${label} ${event.key}` };
  }
  const old = event.old === "[*]" ? "new" : event.old;
  const why = event.why ? `: ${event.why}` : "";
  return { at: event.at, kind: event.kind, label: `${event.what} ${event.new}`, text: `${event.what} moves from ${old} to ${event.new} by ${event.cause}${why}` };
}

/** What a hop of a message shows: an arrow over a link, or something at the node. */
function asHop(hop) {
  const what = `${hop.type}${hop.code ? ` ${hop.code}` : ""} #${hop.id}`;
  const text = `${what} ${OPS[hop.op] ?? hop.op}${hop.why ? ` (${hop.why})` : ""}`;
  const ends = `${hop.from} → ${hop.to}`;
  const isBad = hop.op === "deny" || hop.op === "drop";
  const base = { at: hop.at, kind: isBad ? "bad" : "hop", text, ends };
  if (hop.op === "rcv") return { ...base, from: hop.runtime, to: "", label: what };
  if (hop.op === "xmit") return { ...base, from: "", to: hop.runtime, label: what };
  return { ...base, from: "", to: "", label: `${OPS[hop.op] ?? hop.op}${hop.why ? `: ${hop.why}` : ""}` };
}
