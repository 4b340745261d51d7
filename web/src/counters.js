/** Counts of the refused and dropped messages of a runtime, by reason, and the last ones. */

import { DROPS_KEPT } from "./constants.js";

/** @typedef {{reason: string, actor: string, from: string, to: string, type: string, id: number}} Drop */

export class Counters {
  /** How many messages were dropped, by reason. @type {Map<string, number>} */
  drops = new Map();
  /** The last drops. @type {Drop[]} */
  last = [];

  /**
   * @param {string} reason
   * @param {string} actor
   * @param {import("./message.js").Message} [message]
   */
  drop(reason, actor, message) {
    this.drops.set(reason, (this.drops.get(reason) ?? 0) + 1);
    if (!message) return;
    const { from, to, type, id } = message;
    this.last.push({ reason, actor, from, to, type, id });
    if (this.last.length > DROPS_KEPT) this.last.shift();
  }
}
