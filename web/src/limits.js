/** What is bounded: rates, and shares of peers. */

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

/**
 * Shares of peers in what is handled at a time (`fsm/limits/shares.py`): one has at most half of
 * what is free, and so leaves room for others.
 */
export class Shares {
  #most;
  #count = 0;
  /** @type {Map<string, number>} */
  #of = new Map();

  /** @param {number} most how much is handled at a time, of all peers */
  constructor(most) {
    this.#most = most;
  }

  /**
   * @param {string} peer
   * @returns {boolean} whether there was room; if so, `leave` is owed
   */
  enter(peer) {
    const mine = this.#of.get(peer) ?? 0;
    if (mine >= this.#most - this.#count) return false;
    this.#of.set(peer, mine + 1);
    this.#count += 1;
    return true;
  }

  /** @param {string} peer */
  leave(peer) {
    const mine = /** @type {number} */ (this.#of.get(peer));
    if (mine > 1) this.#of.set(peer, mine - 1);
    else this.#of.delete(peer);
    this.#count -= 1;
  }
}
