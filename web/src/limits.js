/** Limits of rates (token bucket), and of the part of a capacity that one peer may use. */

/** Token bucket: limits operations to a rate, with a burst after a pause. */
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
 * Divides a number of concurrent operations among peers (`fsm/limits/shares.py`): one peer may use
 * at most half of the free capacity, so that others are still served.
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
