/** Time as the cores take it: seconds, and one timer for each actor. */

/**
 * @typedef {object} Clock
 * @property {() => number} now seconds since any moment
 * @property {(at: number, act: () => void) => () => void} at calls once the time has come, unless
 *   the function that it returns is called before
 */

/** A timer of a browser holds no more milliseconds. */
const LONGEST = 2 ** 31 - 1;

/** @type {Clock} */
export const CLOCK = {
  now: () => performance.now() / 1000,
  at(moment, act) {
    if (moment === Infinity) return () => {};
    const wait = Math.min(Math.max(0, (moment - CLOCK.now()) * 1000), LONGEST);
    const timer = setTimeout(act, Math.ceil(wait));
    return () => clearTimeout(timer);
  },
};

/**
 * Wait for some seconds.
 *
 * @param {Clock} clock
 * @param {number} seconds
 * @returns {Promise<null>}
 */
export const sleep = (clock, seconds) =>
  new Promise((resolve) => void clock.at(clock.now() + seconds, () => resolve(null)));

/** The next moment at which an actor has to be asked; only the earliest is waited for. */
export class Alarm {
  #clock;
  #act;
  #at = Infinity;
  #cancel = () => {};

  /**
   * @param {Clock} clock
   * @param {() => void} act
   */
  constructor(clock, act) {
    this.#clock = clock;
    this.#act = act;
  }

  /** @param {number} moment infinity: none */
  set(moment) {
    if (moment === this.#at) return;
    this.#cancel();
    this.#at = moment;
    this.#cancel = this.#clock.at(moment, () => {
      this.#at = Infinity;
      this.#act();
    });
  }
}
