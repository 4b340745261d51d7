/** What is bounded: rates. */

/** Counts what may be done at a rate, after a rest several at once. */
export class TokenBucket {
  #perSecond;
  #burst;
  #tokens;
  #at = -Infinity;

  /**
   * @param {number} perSecond
   * @param {number} burst
   */
  constructor(perSecond, burst) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** @param {number} now */
  #fill(now) {
    if (this.#at !== -Infinity) {
      const grown = Math.max(0, now - this.#at) * this.#perSecond;
      this.#tokens = Math.min(this.#burst, this.#tokens + grown);
    }
    this.#at = now;
  }

  /**
   * @param {number} now
   * @returns {boolean} whether there was a token
   */
  trySpend(now) {
    this.#fill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /**
   * @param {number} now
   * @returns {number} seconds until there is a token
   */
  pause(now) {
    this.#fill(now);
    return Math.max(0, (1 - this.#tokens) / this.#perSecond);
  }
}
