/** Host of a core: runs a state machine without I/O, executes its commands, and sets its timer. */

import { Alarm } from "./clock.js";

/**
 * Runs one core (a state machine without I/O). The commands of a call are executed after the call
 * has returned, and further calls wait until then, so a core is never called recursively.
 *
 * @template C
 * @template {object} P
 */
export class Host {
  #clock;
  #alarm;
  #afterwards;
  /** @type {((core: C, now: number) => unknown)[]} */
  #calls = [];
  /** @type {[string, unknown[]][]} */
  #asked = [];
  #isBusy = false;
  isOver = false;

  /**
   * @param {import("./clock.js").Clock} clock
   * @param {P} port does what the core asks for
   * @param {(port: P) => C} make
   * @param {() => void} [afterwards] is called after all that a call has asked for
   */
  constructor(clock, port, make, afterwards = () => {}) {
    this.#clock = clock;
    this.#afterwards = afterwards;
    this.port = port;
    const get = (/** @type {P} */ _, /** @type {any} */ name) => (/** @type {any[]} */ ...given) =>
      void this.#asked.push([name, given]);
    this.core = make(new Proxy(port, { get }));
    this.#alarm = new Alarm(clock, () => this.run((/** @type {any} */ core, now) => core.timeOver(now)));
  }

  /**
   * Call the core; it may refuse by an error.
   *
   * @param {(core: C, now: number) => unknown} call
   */
  run(call) {
    if (!this.isOver) this.#calls.push(call);
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let next = this.#calls.shift(); next; next = this.#calls.shift()) {
        next(this.core, this.#clock.now());
        const port = /** @type {Record<string, (...given: any[]) => unknown>} */ (this.port);
        for (const [name, given] of this.#asked.splice(0)) port[name](...given);
        this.#afterwards();
      }
    } finally {
      this.#isBusy = false;
      this.#wait();
    }
  }

  #wait() {
    const { deadline = Infinity } = /** @type {{deadline?: number}} */ (this.core);
    this.#alarm.set(this.isOver ? Infinity : deadline);
  }

  /** Stop calling the core. Idempotent. */
  stop() {
    this.isOver = true;
    this.#wait();
  }
}
