/** Timers for renewals of subscriptions and repeats of changes (`fsm/sync/leases.py`). */

import * as constants from "../constants.js";

/** @typedef {import("./copy.js").Published} Published */

/** Deadlines by key, with access to the earliest one. */
export class Alarms {
  /** @type {Map<string, number>} */
  #when = new Map();

  /**
   * @param {string} key
   * @param {number} when infinity: never
   */
  set(key, when) {
    if (when === Infinity) this.#when.delete(key);
    else this.#when.set(key, Math.min(when, this.#when.get(key) ?? Infinity));
  }

  get deadline() {
    return Math.min(Infinity, ...this.#when.values());
  }

  /**
   * Take out the keys that are due, earliest first.
   *
   * @param {number} now
   */
  due(now) {
    const keys = [...this.#when].filter(([, when]) => when <= now);
    keys.sort(([one, first], [other, second]) => first - second || (one < other ? -1 : 1));
    for (const [key] of keys) this.#when.delete(key);
    return keys.map(([key]) => key);
  }

  /** @returns {string} the key whose time is first */
  pop() {
    const at = this.deadline;
    const key = [...this.#when].filter(([, when]) => when === at).map(([one]) => one).sort()[0];
    this.#when.delete(key);
    return key;
  }
}

/** Part of a lease after which it is renewed at the latest. */
export const RENEWED_AFTER = 1 / 3;
/** Part of this time by which renewals are spread at random. */
const JITTER = 1 / 4;
/** Part of a lease to which the pauses between attempts grow. */
const LAST_PAUSE = 1 / 12;

/** Leases of the subscriptions of local observers, and the times of their renewals. */
export class RenewalsCore {
  /** @type {Map<string, {life: number, pause: number}>} */
  #grants = new Map();
  #alarms = new Alarms();
  /** @type {Map<string, number>} */
  #when = new Map();

  /**
   * @param {string} key
   * @param {number} life seconds; infinity: it needs no renewal
   * @param {number} now
   * @param {number} chance from 0 to 1: observers that came together do not renew together
   */
  granted(key, life, now, chance) {
    if (life === Infinity) return this.ended(key);
    this.#grants.set(key, { life, pause: Math.min(constants.READ_PAUSE, life * LAST_PAUSE) });
    this.#set(key, now + life * RENEWED_AFTER * (1 - JITTER * chance));
  }

  /**
   * Schedule the next attempt after a renewal without a decision.
   *
   * @param {string} key
   * @param {number} now
   * @param {number} chance
   */
  unanswered(key, now, chance) {
    const grant = this.#grants.get(key);
    if (!grant) return;
    this.#set(key, now + grant.pause * (1 - JITTER * chance));
    grant.pause = Math.min(2 * grant.pause, grant.life * LAST_PAUSE);
  }

  /** @param {string} key */
  ended(key) {
    this.#grants.delete(key);
    this.#when.delete(key);
    this.#alarms.set(key, Infinity);
  }

  get deadline() {
    return this.#alarms.deadline;
  }

  /**
   * Return the subscriptions to renew now; the host reports the result of each.
   *
   * @param {number} now
   */
  due(now) {
    return this.#alarms.due(now).filter((key) => {
      const when = this.#when.get(key) ?? Infinity;
      if (when > now) this.#alarms.set(key, when);
      else this.#when.delete(key);
      return when <= now;
    });
  }

  /**
   * @param {string} key
   * @param {number} when
   */
  #set(key, when) {
    this.#when.set(key, when);
    this.#alarms.set(key, when);
  }
}

/** The times at which a part of an object is published again. */
export class RepeatTimes {
  /** @type {Map<string, {when: number, pause: number, latest: number}>} */
  #rests = new Map();
  #alarms = new Alarms();
  #notBefore = -Infinity;

  /**
   * Schedule repeats of a new change: the first one soon, then at pauses that double.
   *
   * @param {string} url
   * @param {number} now
   * @param {number} [within] seconds after which it is due although it becomes new again and again
   */
  begin(url, now, within = Infinity) {
    const latest = Math.min(this.#rests.get(url)?.latest ?? Infinity, now + within);
    const when = Math.min(now + constants.REPEAT_FIRST, latest);
    this.#rests.set(url, { when, pause: 2 * constants.REPEAT_FIRST, latest });
    this.#alarms.set(url, when);
  }

  /**
   * Resume the repeats for a new observer, at the longest pause, as it has the newest value.
   *
   * @param {string} url
   * @param {number} now
   */
  observed(url, now) {
    const rest = this.#rests.get(url);
    if (rest?.when !== Infinity) return;
    rest.when = now + constants.REPEAT_LAST;
    rest.pause = constants.REPEAT_LAST;
    this.#alarms.set(url, rest.when);
  }

  /** @param {string} url */
  forget(url) {
    this.#rests.delete(url);
    this.#alarms.set(url, Infinity);
  }

  get deadline() {
    return Math.max(this.#alarms.deadline, this.#notBefore);
  }

  /**
   * Return the object whose last change is to be repeated now; null: none.
   *
   * @param {number} now
   * @param {(url: string) => boolean} isObserved
   */
  due(now, isObserved) {
    while (this.deadline <= now) {
      const url = this.#alarms.pop();
      const rest = this.#rests.get(url);
      if (!rest) continue;
      if (rest.when > now) this.#alarms.set(url, rest.when);
      else if (isObserved(url)) {
        this.#notBefore = now + constants.REPEAT_SPACING;
        rest.when = now + rest.pause;
        rest.latest = Infinity;
        rest.pause = Math.min(2 * rest.pause, constants.REPEAT_LAST);
        this.#alarms.set(url, rest.when);
        return url;
      } else {
        rest.when = Infinity;
        rest.latest = Infinity;
      }
    }
    return null;
  }
}

/** The last change of each object, and when it is due again. */
export class RepeatsCore extends RepeatTimes {
  /** @type {Map<string, {change: Published, left: number}>} */
  #last = new Map();

  /**
   * @param {string} url
   * @param {Published} change
   * @param {boolean} isOfPart whether a part of the runtime reports it, such as the end of a link
   * @param {number} now
   */
  published(url, change, isOfPart, now) {
    this.#last.set(url, { change, left: isOfPart ? constants.PART_REPEATS : Infinity });
    this.begin(url, now);
  }

  /** @param {string} url */
  forget(url) {
    this.#last.delete(url);
    super.forget(url);
  }

  /**
   * Return the change to repeat now; null: none is due.
   *
   * @param {number} now
   * @param {(url: string) => boolean} isObserved
   * @returns {{url: string, change: Published} | null}
   */
  repeated(now, isObserved) {
    const url = this.due(now, isObserved);
    const last = url === null ? undefined : this.#last.get(url);
    if (url === null || !last) return null;
    last.left -= 1;
    if (last.left <= 0) this.forget(url);
    return { url, change: last.change };
  }
}
