/** Tables of a router: open requests, seen messages, and sent answers (`fsm/bus/transactions.py`). */

import { DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { Entity } from "./machine.js";
import { codeOf, isFinal, isResponse, keyOf } from "./message.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./machine.js").Step} Step */

/** Requests without an answer that are remembered, to recognise a late answer. */
const REMEMBERED = 4096;
/** Senders whose messages are remembered; the one without messages for longest is removed first. */
const SENDERS = 4096;

/**
 * An open request; only the host uses `waiter`. `awaited`: the sources that have not answered yet,
 * if several answers are expected; empty: one answer is expected.
 * @template W
 * @typedef {{request: Message, waiter: W, until: number, entity: Entity, awaited: Set<string>}}
 *   Transaction
 */

/**
 * The open requests of one router.
 * @template W
 */
export class Transactions {
  /** @type {Map<string, Transaction<W>>} */
  #open = new Map();
  /** @type {Set<string>} */
  #ended = new Set();

  get size() {
    return this.#open.size;
  }

  /**
   * Begin to wait for the answer to a request.
   *
   * @param {Message} request
   * @param {W} waiter
   * @param {number} now
   * @param {Iterable<string>} [awaited] the `source` of each answer, if there will be several
   * @returns {Step}
   */
  open(request, waiter, now, awaited = []) {
    const key = keyOf(request);
    const entity = new Entity("transaction", key);
    const step = entity.step("opened");
    const until = now + entity.patience;
    this.#open.set(key, { request, waiter, until, entity, awaited: new Set(awaited) });
    this.#ended.delete(key);
    return step;
  }

  /** @param {Message} message a request, or an answer to one */
  find(message) {
    return this.#open.get(keyOf(message)) ?? null;
  }

  /**
   * Process an answer; the first final answer ends the transaction.
   *
   * @param {Message} response
   * @param {number} now
   * @returns {{transaction: Transaction<W> | null, drop: string | null, step: Step | null,
   *   isLast: boolean}}
   */
  answered(response, now) {
    const key = keyOf(response);
    const transaction = this.#open.get(key) ?? null;
    if (!transaction) {
      const drop = this.#ended.has(key) ? DROPS.LATE_RESPONSE : DROPS.UNMATCHED;
      return { transaction, drop, step: null, isLast: false };
    }
    if (!isFinal(response)) {
      const step = transaction.entity.step("provisional");
      transaction.until = now + transaction.entity.patience;
      this.#open.delete(key);
      this.#open.set(key, transaction);
      return { transaction, drop: null, step, isLast: false };
    }
    const { source } = response.body;
    if (transaction.awaited.size && typeof source === "string") {
      if (!transaction.awaited.delete(source)) {
        return { transaction: null, drop: DROPS.UNMATCHED, step: null, isLast: false };
      }
      if (transaction.awaited.size) {
        const step = transaction.entity.step("one-answered");
        return { transaction, drop: null, step, isLast: false };
      }
    }
    this.#open.delete(key);
    return { transaction, drop: null, step: transaction.entity.step("answered"), isLast: true };
  }

  /**
   * End a transaction for which the router makes an answer; the real answer will be late.
   *
   * @param {Message} request
   * @param {string} why
   */
  giveUp(request, why) {
    const transaction = this.find(request);
    return transaction && this.#end(transaction, "refused", why);
  }

  /**
   * End a transaction whose requester no longer waits.
   *
   * @param {string} key of its request
   */
  abandon(key) {
    const transaction = this.#open.get(key);
    return transaction ? this.#end(transaction, "given-up", "") : null;
  }

  /**
   * Return whether a transaction has ended lately without an answer of the receiver.
   *
   * @param {string} key of its request
   */
  hasEnded(key) {
    return this.#ended.has(key);
  }

  /** @param {string} why */
  giveUpAll(why) {
    return [...this.#open.values()].map((one) => this.#end(one, "refused", why));
  }

  /** When the next wait ends. */
  get deadline() {
    for (const transaction of this.#open.values()) return transaction.until;
    return Infinity;
  }

  /**
   * End and return all transactions whose time is over, which the router answers with 408.
   *
   * @param {number} now
   */
  overdue(now) {
    const over = [];
    for (const transaction of this.#open.values()) {
      if (transaction.until > now) break;
      over.push(transaction);
    }
    return over.map((one) => this.#end(one, "silence", ""));
  }

  /**
   * @param {Transaction<W>} transaction
   * @param {string} trigger
   * @param {string} why
   */
  #end(transaction, trigger, why) {
    const { request, waiter, entity } = transaction;
    const step = entity.step(trigger, why);
    this.#open.delete(entity.key);
    this.#ended.add(entity.key);
    if (this.#ended.size > REMEMBERED) {
      for (const oldest of this.#ended) {
        this.#ended.delete(oldest);
        break;
      }
    }
    return { request, waiter, step };
  }
}

/**
 * The last messages of each sender, to detect duplicates, in bounded memory.
 *
 * @typedef {{seen: Map<string, number>, size: number}} Window
 */
export class DeduplicationWindow {
  /** @type {Map<string, Window>} */
  #senders = new Map();
  #size = 0;

  /**
   * Return whether a message was not seen before, and remember the message.
   *
   * @param {Message} message
   * @param {number} now
   */
  isNew(message, now) {
    const { from } = message;
    const window = this.#senders.get(from) ?? { seen: new Map(), size: 0 };
    if (!this.#senders.delete(from)) this.#grow(window, from, 1);
    this.#senders.set(from, window);
    const instance = instanceOf(message);
    const at = window.seen.get(instance);
    if (at !== undefined && now - at <= constants.DEDUP_SECONDS) return false;
    if (at === undefined) this.#grow(window, instance, 1);
    window.seen.set(instance, now);
    for (const oldest of window.seen.keys()) {
      if (window.seen.size <= constants.DEDUP_WINDOW && window.size <= constants.DEDUP_BYTES) break;
      window.seen.delete(oldest);
      this.#grow(window, oldest, -1);
    }
    for (const [silent, { size }] of this.#senders) {
      if (this.#senders.size <= SENDERS && this.#size <= constants.DEDUP_ALL_BYTES) break;
      this.#senders.delete(silent);
      this.#size -= size;
    }
    return true;
  }

  /**
   * @param {Window} window
   * @param {string} text
   * @param {1 | -1} sign
   */
  #grow(window, text, sign) {
    const size = sign * (constants.DEDUP_COST + text.length);
    window.size += size;
    this.#size += size;
  }
}

/** @param {Message} message */
function instanceOf(message) {
  const { to, id, body } = message;
  if (!isResponse(message)) return `${to} ${id}`;
  const source = typeof body.source === "string" ? body.source : "";
  const nth = !isFinal(message) && Number.isInteger(body.sequence) ? body.sequence : 0;
  return `${to} ${id} ${codeOf(message)} ${source} ${nth}`;
}

/**
 * Forget the oldest entries of a map that has too many.
 *
 * @template K, V
 * @param {Map<K, V>} map
 * @param {number} most
 */
export function trim(map, most) {
  for (const oldest of map.keys()) {
    if (map.size <= most) return;
    map.delete(oldest);
  }
}

/** The last sent answers, which are sent again when the same request comes again. */
export class AnswersKept {
  /** @type {Map<string, {request: Message, response: Message}>} */
  #kept = new Map();

  /**
   * @param {Message} request
   * @param {Message} response
   */
  keep(request, response) {
    this.#kept.set(keyOf(request), { request, response });
    trim(this.#kept, constants.ANSWERS_KEPT);
  }

  /** @param {Message} request */
  find(request) {
    return this.#kept.get(keyOf(request)) ?? null;
  }
}
