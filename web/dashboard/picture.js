/** The drawing of a machine, on which entities and steps are shown. */

import { count, say, svg } from "./dom.js";

const HEATS = 5;

const named = (text) => (text === "[*]" ? "absent" : text.replaceAll("-", "_"));

/** The drawing of a machine, with counts. */
export class Picture {
  constructor(text, machine) {
    // Its own style would be inline, which the policy of the page forbids; dashboard.css has it.
    const bare = text.replace(/<style>[^]*?<\/style>/, "");
    const parsed = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
    this.element = document.importNode(parsed, true);
    this.machine = machine;
    this.badges = new Map();
    this.element.setAttribute("aria-label", `State machine ${machine.name}; the tables below say the same`);
    const { width, height } = this.element.viewBox.baseVal;
    // Room for the numbers at the corners of states.
    this.element.setAttribute("viewBox", `-12 -12 ${width + 36} ${height + 24}`);
    this.element.setAttribute("width", width + 36);
    this.element.setAttribute("height", height + 24);
    // On a narrow screen it is scrolled rather than too small to read.
    this.element.style.minWidth = `${Math.round(width)}px`;
  }

  /** Place the numbers; the picture is in the page. */
  measure() {
    for (const state of this.machine.states) {
      const node = this.element.querySelector(`#${CSS.escape(`${this.machine.name}__${named(state.name)}`)}`);
      const box = node?.querySelector("path")?.getBBox();
      if (!box) continue;
      const text = svg("text", { "text-anchor": "middle", x: box.x + box.width, y: box.y + 4 });
      const frame = svg("rect", { rx: 9, height: 18, y: box.y - 9 });
      const group = svg("g", { class: "count" }, frame, text);
      node.append(group);
      this.badges.set(state.name, { node, group, frame, text, x: box.x + box.width });
    }
  }

  /** Show no edge as taken. */
  clear() {
    for (const edge of this.element.querySelectorAll(".edge")) {
      delete edge.dataset.heat;
      edge.classList.remove("just");
    }
  }

  /**
   * Show how many entities are in each state, and how often each edge was taken.
   * @param heat `states` and `edges`, by the id of each
   * @param {Map<string, number>} before how often each edge had been taken at the last call
   */
  show(heat, before) {
    for (const [state, badge] of this.badges) {
      const number = heat?.states[state] ?? 0;
      say(badge.text, number ? count(number) : "");
      badge.group.classList.toggle("none", !number);
      badge.node.classList.toggle("peopled", Boolean(number));
      const width = Math.max(18, 10 + 7 * badge.text.textContent.length);
      badge.frame.setAttribute("width", width);
      badge.frame.setAttribute("x", badge.x - width / 2);
    }
    const most = Math.max(1, ...[...(heat?.edges.values() ?? [])].map((edge) => edge.count));
    for (const [id, edge] of heat?.edges ?? []) {
      const drawn = this.element.querySelector(`#${CSS.escape(`${this.machine.name}__${named(edge.old)}__${named(edge.cause)}`)}`);
      if (!drawn) continue;
      const level = Math.max(1, Math.round((HEATS * Math.log1p(edge.count)) / Math.log1p(most)));
      drawn.dataset.heat = level;
      drawn.classList.toggle("just", before.has(id) && before.get(id) !== edge.count);
    }
  }
}
