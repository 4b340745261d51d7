/** The clock for all timers: time in seconds, and a timer for the next deadline of a component. */

/**
 * @typedef {object} Clock
 * @property {() => number} now seconds since any moment
 * @property {(at: number, act: () => void) => () => void} at calls once the time has come, unless
 *   the function that it returns is called before
 */

/** The longest delay of a browser's timer, in milliseconds. */
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

/** Timer that calls a function at a moment, which can be changed at any time. */
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
