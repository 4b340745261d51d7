/** Message ids, strictly increasing per sender; after a reload none comes twice. */
export class Ids {
  /** @type {Map<string, number>} */
  #last = new Map();
  #start;

  /** @param {number} [start] ids begin above it */
  constructor(start = Date.now() * 1000) {
    this.#start = start;
  }

  /** @param {string} from address of the sender */
  next(from) {
    const id = (this.#last.get(from) ?? this.#start) + 1;
    this.#last.set(from, id);
    return id;
  }

  /**
   * Forget a sender that has left.
   *
   * @param {string} from
   */
  forget(from) {
    this.#last.delete(from);
  }
}
