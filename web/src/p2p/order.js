/**
 * Order of the messages of a pair over the node and links (`fsm/bus/sending_order.py`,
 * `receiving_order.py`): a link announces which request and which answer went by the node last.
 * Requests and events that it brings wait until that request has come, answers until that answer
 * has: between two domains the two may take different connections.
 */

import { HELD_BYTES, ORDER_BYTES, ORDER_HELD, ORDER_PAIRS, ORDER_SENT, ORDER_WAITS, REPLY_TIMEOUT } from "../constants.js";
import { memoryOf, numberOf } from "../json.js";
import { instanceId, isResponse } from "../message.js";

/** @typedef {import("../message.js").Message} Message */

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
  /** By pair, kind and link: what one peer announces delays no messages of another. @type {Map<string,
   * Map<string, {last: string | number, release: () => void, held: (() => void)[], own: {bytes: number}}>>} */
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
      this.#sent.keep(pair, { ...known, top: Math.max(known.top, message.id), asked: now });
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

  /** @param {Message} message that has come by the node */
  came(message) {
    const pair = `${message.from} ${message.to}`;
    const there = this.#came.get(pair) ?? { best: 0, answers: [] };
    const answers = isResponse(message) ? [...there.answers, instanceId(message)].slice(-ORDER_SENT) : there.answers;
    const best = isResponse(message) ? there.best : Math.max(there.best, message.id);
    this.#came.keep(pair, { best, answers });
    for (const waiting of [...(this.#waiting.get(kindOf(pair, message))?.values() ?? [])]) {
      if (this.#has(pair, waiting.last)) waiting.release();
    }
  }

  /**
   * @param {string} pair
   * @param {string | number} key
   */
  #has(pair, key) {
    const there = this.#came.get(pair);
    if (!there) return false;
    return typeof key === "number" ? there.best >= key : there.answers.includes(key);
  }

  /**
   * A peer has announced what the messages of a pair follow.
   *
   * @param {Record<string, unknown>} line
   * @param {string} link that has brought it
   */
  announced({ from, to, last, top, age }, link) {
    const pair = `${from} ${to}`;
    if (typeof top === "number" && top > 0) this.#wait(pair, pair, top, age, link);
    if (typeof last === "string") this.#wait(pair, `${pair} answers`, last, age, link);
  }

  /**
   * @param {string} pair
   * @param {string} kind name of what waits
   * @param {string | number} last
   * @param {unknown} age
   * @param {string} link
   */
  #wait(pair, kind, last, age, link) {
    const there = this.#waiting.get(kind) ?? new Map();
    const load = this.#load.get(link) ?? { pairs: 0, held: 0, bytes: 0 };
    if (this.#has(pair, last) || there.has(link) || load.pairs >= ORDER_WAITS) return;
    /** @type {(() => void)[]} */
    const held = [];
    const own = { bytes: memoryOf(pair) };
    const release = () => {
      cancel();
      there.delete(link);
      if (!there.size) this.#waiting.delete(kind);
      load.pairs -= 1;
      load.held -= held.length;
      load.bytes -= own.bytes;
      if (!load.pairs) this.#load.delete(link);
      for (const give of held) give();
    };
    const passed = Math.min(Math.max(numberOf(age), 0), REPLY_TIMEOUT);
    const cancel = this.#clock.at(this.#clock.now() + REPLY_TIMEOUT - passed, release);
    load.pairs += 1;
    load.bytes += own.bytes;
    this.#load.set(link, load);
    this.#waiting.set(kind, there.set(link, { last, release, held, own }));
  }

  /**
   * Give a message of a link in its turn; false: too many messages of the link wait.
   *
   * @param {Message} message
   * @param {string} link
   * @param {() => void} give
   */
  take(message, link, give) {
    const waiting = this.#waiting.get(kindOf(`${message.from} ${message.to}`, message))?.get(link);
    const load = this.#load.get(link);
    if (!waiting || !load) {
      give();
      return true;
    }
    const bytes = memoryOf(message);
    if (load.held >= ORDER_HELD || load.bytes + bytes > HELD_BYTES) return false;
    load.held += 1;
    load.bytes += bytes;
    waiting.own.bytes += bytes;
    waiting.held.push(give);
    return true;
  }
}
