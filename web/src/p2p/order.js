/**
 * Order of the messages of a pair over the node and links (`fsm/bus/sending_order.py`,
 * `receiving_order.py`): a link announces which request and which answer went by the node last.
 * Requests and events that it brings wait until that request has come, answers until that answer
 * has: between two domains the two may take different connections. What waits goes before a younger
 * message that the node brings: the awaited one is lost.
 */

import { schemeOf } from "../address.js";
import { HELD_BYTES, ORDER_BYTES, ORDER_HELD, ORDER_PAIRS, ORDER_SENT, ORDER_WAITS, REPLY_TIMEOUT } from "../constants.js";
import { memoryOf, numberOf } from "../json.js";
import { instanceId, isResponse, viaOf } from "../message.js";

/** @typedef {import("../message.js").Message} Message */

/**
 * The messages that came after one announcement and before the next.
 * @typedef {{last: string | number, top: number, answers: Set<unknown>, bytes: number,
 *   held: (() => void)[], cancel: () => void}} Waiting
 */

/**
 * @param {string} pair
 * @param {Message} message
 */
const kindOf = (pair, message) => (isResponse(message) ? `${pair} answers` : pair);

/** Bytes of a pair, without its texts. */
const PAIR_BYTES = 1024;

/**
 * What is remembered of pairs, within `ORDER_PAIRS` and `ORDER_BYTES`; the oldest is forgotten first.
 *
 * @template {{answers: unknown[]}} V
 */
class Pairs {
  /** @type {Map<string, {value: V, size: number}>} */
  #all = new Map();
  #bytes = 0;

  /** @param {string} pair */
  get(pair) {
    return this.#all.get(pair)?.value;
  }

  /**
   * @param {string} pair
   * @param {V} value
   */
  keep(pair, value) {
    this.#drop(pair);
    // An answer is known by the addresses of its pair.
    const size = PAIR_BYTES + pair.length * (1 + value.answers.length);
    this.#all.set(pair, { value, size });
    this.#bytes += size;
    for (const oldest of this.#all.keys()) {
      if (this.#all.size <= ORDER_PAIRS && this.#bytes <= ORDER_BYTES) return;
      this.#drop(oldest);
    }
  }

  /** @param {string} pair */
  #drop(pair) {
    this.#bytes -= this.#all.get(pair)?.size ?? 0;
    this.#all.delete(pair);
  }
}

/** What went by the node, and what has come by it. */
export class PairOrder {
  #clock;
  /** @type {Pairs<{top: number, asked: number, answer: string, answered: number, answers: {id: number, instance: string, at: number}[]}>} */
  #sent = new Pairs();
  /** @type {Pairs<{best: number, answers: string[]}>} */
  #came = new Pairs();
  /** By pair, kind and link: what one peer announces delays no messages of another.
   * @type {Map<string, Map<string, Waiting[]>>} */
  #waiting = new Map();
  /** How many pairs and messages of each link wait, and their bytes of memory.
   * @type {Map<string, {pairs: number, held: number, bytes: number}>} */
  #load = new Map();

  /** @param {import("../clock.js").Clock} clock */
  constructor(clock) {
    this.#clock = clock;
  }

  /** @param {Message} message that goes by the node */
  sent(message) {
    const pair = `${message.from} ${message.to}`;
    const known = this.#sent.get(pair) ?? { top: 0, asked: -Infinity, answer: "", answered: -Infinity, answers: [] };
    const now = this.#clock.now();
    if (!isResponse(message)) {
      // The first copy of a repeat may have come long ago.
      if (message.id <= known.top) return;
      this.#sent.keep(pair, { ...known, top: message.id, asked: now });
      return;
    }
    const { id } = message;
    const instance = instanceId(message);
    const recent = known.answers.filter(({ at }) => at > now - REPLY_TIMEOUT);
    // A second copy follows what the first one precedes.
    if (recent.some((answer) => answer.instance === instance)) return;
    const answers = [...recent, { id, instance, at: now }].slice(-ORDER_SENT);
    this.#sent.keep(pair, { ...known, answer: instance, answered: now, answers });
  }

  /**
   * Return the line that says what the messages of a pair by a link follow.
   *
   * @param {string} from
   * @param {string} to
   */
  behind(from, to) {
    const line = { p2p: "behind", from, to };
    const known = this.#sent.get(`${from} ${to}`);
    if (!known) return line;
    const since = this.#clock.now() - REPLY_TIMEOUT;
    const top = known.asked > since ? known.top : 0;
    const last = known.answered > since ? known.answer : top;
    if (!last) return line;
    const age = Math.round((this.#clock.now() - Math.max(known.asked, known.answered)) * 1000) / 1000;
    const recent = known.answers.filter(({ at }) => at > since);
    const answers = [...new Set(recent.map(({ id }) => id))].sort((a, b) => a - b);
    return { ...line, last, top, age, answers };
  }

  /**
   * Give what waits for lost messages, and goes before a message that the node brings.
   *
   * @param {Message} message
   */
  arrives(message) {
    const [pair, via] = [`${message.from} ${message.to}`, viaOf(message)];
    // Else a node, or the own stub, has refused a request: it was not sent with the peer's answers.
    const isByRuntime = via.length > 1 && schemeOf(via[0]) === "hyperty-runtime";
    if (!isResponse(message)) this.#releaseDue(pair, ({ top }) => message.id > top);
    else if (isByRuntime && !this.#has(pair, instanceId(message))) {
      // Of so many answers the announcement does not name the older ones.
      this.#releaseDue(kindOf(pair, message), ({ answers }) => !answers.has(message.id) && answers.size < ORDER_SENT);
    }
  }

  /** @param {Message} message that has come by any path, and in its turn */
  came(message) {
    const pair = `${message.from} ${message.to}`;
    const there = this.#came.get(pair) ?? { best: 0, answers: [] };
    const isNew = isResponse(message) && !there.answers.includes(instanceId(message));
    const answers = isNew ? [...there.answers, instanceId(message)].slice(-ORDER_SENT) : there.answers;
    const best = isResponse(message) ? there.best : Math.max(there.best, message.id);
    this.#came.keep(pair, { best, answers });
    this.#releaseDue(kindOf(pair, message), ({ last }) => this.#has(pair, last));
  }

  /**
   * @param {string} pair
   * @param {string | number} key
   */
  #has(pair, key) {
    const there = this.#came.get(pair);
    return typeof key === "number" ? (there?.best ?? 0) >= key : Boolean(there?.answers.includes(key));
  }

  /**
   * A peer has announced what the messages of a pair follow.
   *
   * @param {Record<string, any>} line
   * @param {string} link that has brought it
   */
  announced(line, link) {
    const [pair, last] = [`${line.from} ${line.to}`, line.last];
    this.#wait(pair, pair, numberOf(line.top), line, link);
    this.#wait(pair, `${pair} answers`, typeof last === "string" ? last : 0, line, link);
  }

  /**
   * @param {string} pair
   * @param {string} kind name of what waits
   * @param {string | number} last
   * @param {Record<string, any>} line
   * @param {string} link
   */
  #wait(pair, kind, last, line, link) {
    const load = this.#load.get(link) ?? { pairs: 0, held: 0, bytes: 0 };
    const links = this.#waiting.get(kind) ?? new Map();
    /** @type {Waiting[]} */
    const there = links.get(link) ?? [];
    const passed = Math.max(numberOf(line.age), 0);
    const bytes = memoryOf(line);
    const isFull = load.bytes + bytes > HELD_BYTES || (!there.length && load.pairs >= ORDER_WAITS);
    if (this.#has(pair, last) || passed >= REPLY_TIMEOUT || isFull) return this.#release(kind, link, there.length);
    if (!there.length) load.pairs += 1;
    else if (!there[there.length - 1].held.length) {
      const empty = /** @type {Waiting} */ (there.pop());
      empty.cancel();
      load.bytes -= empty.bytes;
    }
    /** @type {Waiting} */
    const latest = { last, top: numberOf(line.top), answers: new Set(line.answers), bytes, held: [], cancel: () => {} };
    const release = () => this.#release(kind, link, there.indexOf(latest) + 1);
    latest.cancel = this.#clock.at(this.#clock.now() + REPLY_TIMEOUT - passed, release);
    there.push(latest);
    load.bytes += bytes;
    this.#load.set(link, load);
    this.#waiting.set(kind, links.set(link, there));
  }

  /**
   * Release what is due, and what came by the same link before it.
   *
   * @param {string} kind
   * @param {(one: Waiting) => boolean} isDue
   */
  #releaseDue(kind, isDue) {
    for (const [link, there] of [...(this.#waiting.get(kind) ?? [])]) {
      this.#release(kind, link, there.map(isDue).lastIndexOf(true) + 1);
    }
  }

  /**
   * @param {string} kind
   * @param {string} link
   * @param {number} count
   */
  #release(kind, link, count) {
    const links = this.#waiting.get(kind);
    const there = links?.get(link);
    const load = this.#load.get(link);
    if (!links || !there || !load) return;
    const released = there.splice(0, count);
    for (const { cancel, held, bytes } of released) {
      cancel();
      load.held -= held.length;
      load.bytes -= bytes;
    }
    if (!there.length) {
      links.delete(link);
      if (!links.size) this.#waiting.delete(kind);
      load.pairs -= 1;
      if (!load.pairs) this.#load.delete(link);
    }
    for (const { held } of released) for (const give of held) give();
  }

  /**
   * Give a message of a link in its turn; false: too many messages of the link wait.
   *
   * @param {Message} message
   * @param {string} link
   * @param {() => void} give
   */
  take(message, link, give) {
    const waiting = this.#waiting.get(kindOf(`${message.from} ${message.to}`, message))?.get(link)?.at(-1);
    const load = this.#load.get(link);
    if (!waiting || !load) {
      give();
      return true;
    }
    const bytes = memoryOf(message);
    if (load.held >= ORDER_HELD || load.bytes + bytes > HELD_BYTES) return false;
    load.held += 1;
    load.bytes += bytes;
    waiting.bytes += bytes;
    waiting.held.push(give);
    return true;
  }
}
