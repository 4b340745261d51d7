/** Message ids, strictly increasing per sender; none comes twice, also after a reload or a rest. */
export class Ids {
  /** @type {Map<string, number>} */
  #last = new Map();
  /** @type {Set<string>} */
  #halved = new Set();

  /** @param {string} from address of the sender */
  next(from) {
    const last = this.#last.get(from) ?? Math.floor((performance.timeOrigin + performance.now()) * 1000);
    const id = last + (this.#halved.has(from) ? 2 : 1);
    this.#last.set(from, id);
    return id;
  }

  /**
   * Leave every second id of a sender to its Worker, and return the one before the first of these.
   *
   * @param {string} from
   */
  halve(from) {
    const id = this.next(from) + 1;
    this.#halved.add(from);
    return id;
  }

  /**
   * Forget a sender that has left.
   *
   * @param {string} from
   */
  forget(from) {
    this.#last.delete(from);
    this.#halved.delete(from);
  }
}
