/**
 * The children of an object at its reporter's end: their order and age, and what has left; see
 * `fsm/sync/child_history.py`.
 */

import * as constants from "../constants.js";
import { ChildSet, ENTRY, REMOVED, RESOURCES } from "./children.js";

/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("./children.js").ChildOp} ChildOp */

/** All children of a reported object; `children` is changed by the methods of this class only. */
export class ChildHistory {
  #epoch;
  /** Number of each child, and when it was accepted, in seconds since 1970. @type {Map<string, {number: number, time: number}>} */
  #places = new Map();
  #created = 0;
  #gone = 0;
  /** @type {string[]} */
  #ended = [];
  #reportAt = Infinity;

  /**
   * @param {import("./children.js").ChildWindow | null} [window] null: it keeps all, within the limits of an object
   * @param {number} [epoch] seconds since 1970 when the clock was 0
   */
  constructor(window = null, epoch = 0) {
    this.#epoch = epoch;
    this.children = new ChildSet(window);
  }

  /** When a child leaves, or a report is due. */
  get deadline() {
    const [oldest] = this.children.kept.keys();
    return Math.min(this.#reportAt, this.#leavesAt(oldest));
  }

  /** @param {string} [name] */
  #leavesAt(name = "") {
    return (this.#places.get(name)?.time ?? Infinity) + (this.children.window?.seconds ?? Infinity) - this.#epoch;
  }

  /**
   * Return whether removed children are to be reported now.
   *
   * @param {number} now
   */
  isReportDue(now) {
    return now >= this.#reportAt || this.#ended.length >= constants.ENDED_AT_ONCE;
  }

  /**
   * Apply the operation of a creator, as `ChildSet.take`.
   *
   * @param {ChildOp} op
   * @param {number} now
   */
  take(op, now) {
    const isNew = !this.children.kept.has(op.name);
    if (this.children.window && isNew && op.act === "update") return REMOVED;
    const taken = this.children.take(op);
    if (taken !== true || !this.children.window) return taken;
    if (op.act === "delete") this.#places.delete(op.name);
    else if (isNew) {
      this.#created += 1;
      this.#places.set(op.name, { number: this.#created, time: now + this.#epoch });
    }
    return true;
  }

  /**
   * Remove the children that leave the window; return their names, the oldest first.
   *
   * @param {number} now
   */
  trim(now) {
    const ended = this.children.trim();
    for (const name of this.children.kept.keys()) {
      if (this.#leavesAt(name) > now) break;
      this.children.end(name);
      ended.push(name);
    }
    this.#gone = Math.max(this.#gone, ...ended.map((name) => this.#places.get(name)?.number ?? 0));
    this.#note(ended, now);
    return ended;
  }

  /**
   * Remove a child that the reporter deletes; return whether it existed.
   *
   * @param {string} name
   * @param {number} now
   */
  end(name, now) {
    if (!this.children.end(name)) return false;
    this.#note([name], now);
    return true;
  }

  /**
   * Have removed children reported a moment later.
   *
   * @param {string[]} ended
   * @param {number} now
   */
  #note(ended, now) {
    for (const name of ended) this.#places.delete(name);
    this.#ended.push(...ended);
    if (ended.length) this.#reportAt = Math.min(this.#reportAt, now + constants.WINDOW_PAUSE);
  }

  /**
   * Return the digest of the children, with the names that observers do not know to be gone: at most
   * `ENDED_AT_ONCE`; the others are due at once.
   *
   * @returns {import("./children.js").Sign | import("./children.js").ChildrenEnded}
   */
  report() {
    const ended = this.#ended.splice(0, constants.ENDED_AT_ONCE);
    if (!this.#ended.length) this.#reportAt = Infinity;
    const { sign } = this.children;
    if (this.children.window) return { ...sign, ended, created: this.#created, gone: this.#gone };
    return ended.length ? { ...sign, ended } : sign;
  }

  /**
   * Return all children in the form in which the whole object contains them.
   *
   * @returns {JsonObject}
   */
  snapshot() {
    return this.children.window ? this.#page([...this.children.kept.keys()]) : { [RESOURCES]: this.children.shown() };
  }

  /**
   * Return the children from a number on, as many as one message has room for.
   *
   * @param {number} after number of the last child before the page
   */
  page(after) {
    const names = [];
    let last = after;
    let room = constants.PAGE_BYTES;
    for (const [name, { size }] of this.children.kept) {
      const { number } = /** @type {{number: number}} */ (this.#places.get(name));
      if (number <= after) continue;
      room -= 2 * ENTRY + size;
      if (room < 0 || names.length === constants.CHILDREN_OF_OBJECT) return this.#page(names, last);
      names.push(name);
      last = number;
    }
    return this.#page(names);
  }

  /**
   * @param {string[]} names
   * @param {number} [next] number of the last child, if others follow
   * @returns {JsonObject}
   */
  #page(names, next) {
    const { kept } = this.children;
    const entries = names.map((name) => {
      const { value, version } = /** @type {import("./children.js").Kept} */ (kept.get(name));
      const { number: place, time } = /** @type {{number: number, time: number}} */ (this.#places.get(name));
      return [name, { value, version, place, time: Math.round(1000 * time) / 1000 }];
    });
    const window = { created: this.#created, gone: this.#gone, ...(next === undefined ? {} : { next }) };
    return { [RESOURCES]: Object.fromEntries(entries), window };
  }
}
