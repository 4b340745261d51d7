/** Elements of the page. All text is set as text: nothing that a peer wrote is read as markup. */

const SVG = "http://www.w3.org/2000/svg";

/** Characters that are shown as codes, as in `specs/jsonvalue.py`: controls, invisible ones. */
const ACTIVE = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{d800}-\u{dfff}\u{e0000}-\u{e007f}]/gu;

/** A text that others may have chosen, with nothing in it that changes how the rest is shown. */
export const plain = (text) => String(text).replace(ACTIVE, (found) =>
  Array.from({ length: found.length }, (_, at) =>
    `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));

/**
 * Make an element.
 * @param {string} tag name of the element
 * @param {Record<string, unknown>} [set] attributes; `text` is its text, `on…` are listeners
 * @param {...(Node | string | null | undefined | false)} children
 */
export function el(tag, set = {}, ...children) {
  return fill(document.createElement(tag), set, children);
}

/** Make an element of SVG; otherwise as `el`. */
export function svg(tag, set = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), set, children);
}

function fill(element, set, children) {
  for (const [name, value] of Object.entries(set)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = plain(value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : plain(value));
  }
  const shown = children.filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...shown.map((child) => (typeof child === "string" ? plain(child) : child)));
  return element;
}

/** Set a text, and touch the page only if it is another one. */
export function say(element, text) {
  const wanted = plain(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

const WHOLE = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat("en", {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat("en", { day: "2-digit", month: "short" });

/** A number as people read it. */
export const count = (value) => WHOLE.format(value ?? 0);

/** A number with its noun. */
export const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;

/** A rate per second. */
export const rate = (value) => (value >= 10 || value === 0 ? count(Math.round(value)) : value.toFixed(1));

/** A time of the day; of another day with its date. */
export function clock(seconds) {
  const at = new Date(seconds * 1000);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? CLOCK.format(at) : `${DAY.format(at)} ${CLOCK.format(at)}`;
}

/** How long ago something was, in its largest unit. */
export function since(seconds, now) {
  const age = Math.max(0, now - seconds);
  if (age < 60) return `${Math.floor(age)} s`;
  if (age < 3600) return `${Math.floor(age / 60)} min`;
  if (age < 86400) return `${Math.floor(age / 3600)} h`;
  return `${Math.floor(age / 86400)} d`;
}

/** The last part of an address, by which people know it. */
export const shortName = (address) => address.split("/").filter(Boolean).pop() || address;

/** The place in the page that shows a runtime. */
export const runtimeLink = (runtime) => `#/runtime/${encodeURIComponent(runtime)}`;

/** Hosts by which a node listens everywhere: no other machine finds it by them. */
const NOWHERE = new Set(["0.0.0.0", "[::]"]);

/** A node by its name, which leads to a page of its dashboard if its address is known. */
export function nodeLink(node, url, hash = "#/fleet") {
  const place = URL.canParse(url) ? new URL(url) : { protocol: "" };
  const name = el("b", { text: node });
  if (!["http:", "https:"].includes(place.protocol)) return name;
  if (!NOWHERE.has(place.hostname)) return el("a", { href: new URL(`/web/dashboard/index.html${hash}`, place).href, text: node });
  const port = place.port || (place.protocol === "https:" ? 443 : 80);
  return el("span", {}, name, ` (it listens at all addresses of its machine; its dashboard is at port ${port} of each)`);
}

const TONES = {
  open: "good", live: "good", created: "calm", allocated: "good", detached: "open", lasting: "calm",
  disconnected: "open", closed: "calm", expired: "bad", dead: "bad",
  member: "good", joining: "open", leaving: "open", fenced: "bad", gone: "bad", left: "calm",
};

/** A state: its colour is never the only sign of it. */
export function badge(state) {
  return el("span", { class: "badge", "data-tone": TONES[state] ?? "calm", text: state || "new" });
}

/** A card with a heading. */
export function card(title, ...children) {
  return el("section", { class: "card" }, el("h2", { text: title }), ...children);
}

/** A control with its label above it. */
export function field(label, control) {
  return el("div", { class: "field" }, el("label", { for: control.id, text: label }), control);
}

/** The text in place of an empty table. */
export function empty(title, text) {
  return el("div", { class: "empty" }, el("p", { class: "empty-title", text: title }), el("p", { text }));
}

/**
 * A table that is sorted by its headings and shows one page of its rows.
 *
 * A column is `{key, label, value, cell, numeric, tight, wide}`: `value(row)` is sorted by and shown,
 * unless `cell(row)` makes a node; `tight` ones do not wrap; `wide` ones are left out on narrow screens,
 * and those that are `"extra"` also on usual ones.
 */
export class DataTable {
  constructor({ caption, columns, id, sort, size = 50, none, isEven = false }) {
    this.columns = columns;
    this.id = id;
    this.size = size;
    this.page = 0;
    this.sort = sort ?? { key: columns[0].key, down: false };
    this.rows = [];
    this.shown = new Map();
    this.body = el("tbody");
    this.heads = columns.map((column) => this.#head(column));
    this.table = el("table", {}, el("caption", { text: caption }),
      el("thead", {}, el("tr", {}, ...this.heads)), this.body);
    this.none = none ?? empty("Nothing yet", "");
    this.place = el("p", { class: "muted place" });
    this.before = el("button", { type: "button", class: "quiet", text: "Previous", onclick: () => this.#turn(-1) });
    this.next = el("button", { type: "button", class: "quiet", text: "Next", onclick: () => this.#turn(1) });
    this.pager = el("div", { class: "pager" }, this.place, this.before, this.next);
    this.element = el("div", { class: isEven ? "table even" : "table" }, this.table, this.none, this.pager);
    this.#mark();
  }

  /** Show other rows. */
  set(rows) {
    this.rows = rows;
    this.render();
  }

  render() {
    const column = this.columns.find((one) => one.key === this.sort.key);
    const sign = this.sort.down ? -1 : 1;
    const sorted = [...this.rows].sort((a, b) => sign * order(column.value(a), column.value(b)));
    const pages = Math.max(1, Math.ceil(sorted.length / this.size));
    this.page = Math.min(this.page, pages - 1);
    const first = this.page * this.size;
    const visible = sorted.slice(first, first + this.size);
    this.table.hidden = !sorted.length;
    this.none.hidden = Boolean(sorted.length);
    this.pager.hidden = pages === 1;
    say(this.place, `${count(first + 1)}–${count(first + visible.length)} of ${count(sorted.length)}`);
    this.before.disabled = this.page === 0;
    this.next.disabled = this.page === pages - 1;
    const lines = new Map();
    let at = this.body.firstChild;
    for (const row of visible) {
      const key = this.id(row);
      const line = this.shown.get(key) ?? this.#line();
      lines.set(key, line);
      this.#update(line, row);
      if (line.element === at) at = at.nextSibling;
      else this.body.insertBefore(line.element, at);
    }
    for (const [key, line] of this.shown) if (!lines.has(key)) line.element.remove();
    this.shown = lines;
  }

  #line() {
    const cells = this.columns.map((column, place) => el(place ? "td" : "th", {
      class: classes(column),
      scope: place ? null : "row",
    }));
    return { element: el("tr", {}, ...cells), cells, was: [] };
  }

  #update(line, row) {
    this.columns.forEach((column, place) => {
      const value = column.text ? column.text(row) : column.value(row);
      if (line.was[place] === value) return;
      line.was[place] = value;
      if (column.cell) line.cells[place].replaceChildren(column.cell(row));
      else line.cells[place].textContent = typeof value === "number" ? count(value) : plain(value);
    });
  }

  #head(column) {
    const button = el("button", { type: "button", onclick: () => this.#order(column) }, column.label,
      el("span", { class: "arrow", "aria-hidden": "true" }));
    return el("th", { scope: "col", class: classes(column) }, button);
  }

  #order(column) {
    const isSame = this.sort.key === column.key;
    this.sort = { key: column.key, down: isSame ? !this.sort.down : Boolean(column.numeric) };
    this.page = 0;
    this.#mark();
    this.render();
  }

  #mark() {
    this.columns.forEach((column, place) => {
      const isSorted = column.key === this.sort.key;
      const way = this.sort.down ? "descending" : "ascending";
      if (isSorted) this.heads[place].setAttribute("aria-sort", way);
      else this.heads[place].removeAttribute("aria-sort");
    });
  }

  #turn(by) {
    this.page += by;
    this.render();
    if (by > 0 ? this.next.disabled : this.before.disabled) (by > 0 ? this.before : this.next).focus();
  }
}

function classes({ numeric, tight, wide }) {
  const all = [numeric && "number", tight && "tight", wide && "wide", wide === "extra" && "extra"];
  return all.filter(Boolean).join(" ") || null;
}

function order(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** A table of names with their counts, each row a pair; the largest count first. */
export const countTable = (caption, none, label = "Name", name = (row) => row[0]) => new DataTable({
  caption,
  id: (row) => row[0],
  sort: { key: "count", down: true },
  none: empty(none, ""),
  columns: [
    { key: "name", label, value: name },
    { key: "count", label: "Count", value: (row) => row[1], numeric: true },
  ],
});

/** A figure with its name above it, and more elements below it. */
export function tile(label, ...more) {
  const value = el("p", { class: "tile-value", text: "0" });
  const element = el("div", { class: "tile" }, el("p", { class: "tile-label", text: label }), value, ...more);
  return { element, set: (text) => say(value, text) };
}

const SLOTS = 20;

/** A small plot of rates. */
export class Plot {
  constructor(label, width = 240, height = 44) {
    [this.width, this.height] = [width, height];
    this.area = svg("path", { class: "plot-area" });
    this.line = svg("path", { class: "plot-line" });
    this.element = svg("svg", {
      class: "plot", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label,
    }, this.area, this.line);
  }

  /** Draw values, the last one at the right; few values do not fill the width. */
  draw(values) {
    const most = Math.max(1, ...values);
    const step = this.width / Math.max(SLOTS, values.length - 1);
    const from = this.width - (values.length - 1) * step;
    const points = values.map((value, place) => {
      const y = this.height - 2 - (value / most) * (this.height - 6);
      return `${(from + place * step).toFixed(1)},${y.toFixed(1)}`;
    });
    const path = points.length > 1 ? `M${points.join("L")}` : "";
    this.line.setAttribute("d", path);
    this.area.setAttribute("d", path && `${path}L${this.width},${this.height}L${from.toFixed(1)},${this.height}Z`);
  }
}
