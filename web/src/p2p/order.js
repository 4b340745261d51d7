/**
 * Order of the messages of a pair over the node and links (`fsm/bus/sending_order.py`,
 * `receiving_order.py`): a link announces what went by the node last, and what it brings waits
 * until that has come.
 */

import { ORDER_HELD, ORDER_PAIRS, ORDER_SENT, ORDER_WAITS, REPLY_TIMEOUT } from "../constants.js";
import { numberOf } from "../json.js";
import { instanceId, isResponse } from "../message.js";

/** @typedef {import("../message.js").Message} Message */

/** @param {Message} message */
const keyOf = (message) => (isResponse(message) ? instanceId(message) : message.id);

/**
 * @template V
 * @param {Map<string, V>} map
 * @param {string} key
 * @param {V} value
 */
function keep(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > ORDER_PAIRS) map.delete([...map.keys()][0]);
}

/** What went by the node, and what has come by it. */
export class PairOrder {
  #clock;
  /** @type {Map<string, {last: string | number, top: number, at: number, answers: number[]}>} */
  #sent = new Map();
  /** @type {Map<string, {best: number, answers: string[]}>} */
  #came = new Map();
  /** By pair and link: what one peer announces delays no messages of another. @type {Map<string,
   * Map<string, {last: string | number, release: () => void, held: (() => void)[]}>>} */
  #waiting = new Map();
  /** How many pairs and messages of each link wait. @type {Map<string, {pairs: number, held: number}>} */
  #load = new Map();

  /** @param {import("../clock.js").Clock} clock */
  constructor(clock) {
    this.#clock = clock;
  }

  /** @param {Message} message that goes by the node */
  sent(message) {
    const pair = `${message.from} ${message.to}`;
    const there = this.#sent.get(pair) ?? { last: 0, top: 0, at: 0, answers: [] };
    const isAnswer = isResponse(message);
    keep(this.#sent, pair, {
      last: keyOf(message),
      top: isAnswer ? there.top : Math.max(there.top, message.id),
      at: this.#clock.now(),
      answers: isAnswer ? [...there.answers, message.id].slice(-ORDER_SENT) : there.answers,
    });
  }

  /**
   * Return the line that says what the messages of a pair by a link follow.
   *
   * @param {string} from
   * @param {string} to
   */
  behind(from, to) {
    const there = this.#sent.get(`${from} ${to}`);
    const age = there ? this.#clock.now() - there.at : Infinity;
    const said = { p2p: "behind", from, to };
    if (!there || age >= REPLY_TIMEOUT) return said;
    const { last, top, answers } = there;
    return { ...said, last, top, age: Math.round(age * 1000) / 1000, answers: [...new Set(answers)].sort((a, b) => a - b) };
  }

  /** @param {Message} message that has come by the node */
  came(message) {
    const pair = `${message.from} ${message.to}`;
    const there = this.#came.get(pair) ?? { best: 0, answers: [] };
    const answers = isResponse(message) ? [...there.answers, instanceId(message)].slice(-ORDER_SENT) : there.answers;
    const best = isResponse(message) ? there.best : Math.max(there.best, message.id);
    keep(this.#came, pair, { best, answers });
    for (const waiting of [...(this.#waiting.get(pair)?.values() ?? [])]) {
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
  announced({ from, to, last, age }, link) {
    if (typeof last !== "number" && typeof last !== "string") return;
    const pair = `${from} ${to}`;
    const there = this.#waiting.get(pair) ?? new Map();
    const load = this.#load.get(link) ?? { pairs: 0, held: 0 };
    if (this.#has(pair, last) || there.has(link) || load.pairs >= ORDER_WAITS) return;
    /** @type {(() => void)[]} */
    const held = [];
    const release = () => {
      cancel();
      there.delete(link);
      if (!there.size) this.#waiting.delete(pair);
      load.pairs -= 1;
      load.held -= held.length;
      if (!load.pairs) this.#load.delete(link);
      for (const give of held) give();
    };
    const passed = Math.min(Math.max(numberOf(age), 0), REPLY_TIMEOUT);
    const cancel = this.#clock.at(this.#clock.now() + REPLY_TIMEOUT - passed, release);
    load.pairs += 1;
    this.#load.set(link, load);
    this.#waiting.set(pair, there.set(link, { last, release, held }));
  }

  /**
   * Give a message of a link in its turn; false: too many messages of the link wait.
   *
   * @param {Message} message
   * @param {string} link
   * @param {() => void} give
   */
  take(message, link, give) {
    const waiting = this.#waiting.get(`${message.from} ${message.to}`)?.get(link);
    const load = this.#load.get(link);
    if (!waiting || !load) give();
    else if (load.held >= ORDER_HELD) return false;
    else {
      load.held += 1;
      waiting.held.push(give);
    }
    return true;
  }
}
