/** Generator of message ids, which increase for each sender, also over reloads of the page. */
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
   * Reserve every second id of a sender for its Worker; return the id before the Worker's first.
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
