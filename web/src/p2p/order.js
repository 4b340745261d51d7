/**
 * Order of messages between a pair of sender and receiver that use the node and direct links
 * (`fsm/bus/sending_order.py`, `receiving_order.py`). A link announces which request and which
 * answer were sent by the node last. Later messages by the link wait until those have arrived. If
 * the node delivers a later message first, the awaited one is lost, and the waiting ones go on.
 */

import { canonical, schemeOf } from "../address.js";
import { HELD_BYTES, ORDER_BYTES, ORDER_HELD, ORDER_PAIRS, ORDER_SENT, ORDER_WAITS, REPLY_TIMEOUT } from "../constants.js";
import { BadMessageError, memoryOf, numberOf } from "../json.js";
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

/** @param {Message} message */
const nameOf = (message) => (isResponse(message) ? instanceId(message) : message.id);

/**
 * State of a pair for sending: the highest id and last answers by any stub, the unanswered requests
 * by the node, and the last announcement of a link.
 * @typedef {{best: number, answers: string[], sent: Map<string | number, {at: number, id: number}>,
 *   told: {last: string | number, top: number, link: Announcer} | null}} Path
 */

/** @typedef {{announce: (line: object) => void}} Announcer */

/**
 * Check an announcement that a peer has written, and return it.
 *
 * @param {Record<string, any>} line
 */
export function readBehind({ from, to, last, top, age, answers }) {
  const line = { p2p: "behind", from: canonical(from), to: canonical(to) };
  if (typeof last !== "string" && !Number.isInteger(last)) return line;
  const isPlaced = Number.isInteger(top) && typeof age === "number" && age >= 0 && Array.isArray(answers) &&
    answers.length <= ORDER_SENT && answers.every(Number.isInteger) && new Set(answers).size === answers.length;
  if (!isPlaced) throw new BadMessageError("an announcement on a P2P link lacks its top, its age or its answers");
  return { ...line, last, top, age, answers };
}

/** Bytes of a pair, without its texts. */
const PAIR_BYTES = 1024;

/**
 * Bounded map of the states of pairs (`ORDER_PAIRS`, `ORDER_BYTES`); the oldest is removed first.
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
   * @param {number} [more] messages that it names beside its answers
   */
  keep(pair, value, more = 0) {
    this.#drop(pair);
    // An answer is known by the addresses of its pair.
    const size = PAIR_BYTES + pair.length * (1 + value.answers.length + more);
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

/** Keeps the messages of each pair of sender and receiver in order over the node and links. */
export class PairOrder {
  #clock;
  /** @type {Pairs<Path>} */
  #sent = new Pairs();
  /** @type {Pairs<{best: number, path: string, answers: string[]}>} */
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

  /**
   * @param {Message} message that goes by a stub
   * @param {boolean} [isByNode]
   * @param {boolean} [isBack] whether a link has handed it back
   */
  sent(message, isByNode = true, isBack = false) {
    const pair = `${message.from} ${message.to}`;
    /** @type {Path} */
    const path = this.#sent.get(pair) ?? { best: 0, answers: [], sent: new Map(), told: null };
    const name = nameOf(message);
    const isNew = typeof name === "number" ? name > path.best : !path.answers.includes(name);
    if (typeof name === "number") path.best = Math.max(path.best, name);
    else if (isNew) path.answers = [...path.answers, name].slice(-ORDER_SENT);
    // The first copy of a repeat may have come long ago.
    if (isByNode && (isNew || isBack)) this.#note(path.sent, name, message.id);
    this.#sent.keep(pair, path, path.sent.size);
  }

  /**
   * @param {Path["sent"]} sent
   * @param {string | number} name
   * @param {number} id
   */
  #note(sent, name, id) {
    const now = this.#clock.now();
    for (const [old, { at }] of sent) {
      if (at + REPLY_TIMEOUT > now) break;
      sent.delete(old);
    }
    // A second copy follows what the first one precedes.
    if (!sent.has(name)) sent.set(name, { at: now, id });
    const alike = [...sent.keys()].filter((one) => typeof one === typeof name);
    if (alike.length > ORDER_SENT) sent.delete(alike[0]);
  }

  /**
   * Process that a request has its final answer, or that a message will never be sent. A link that
   * has announced the message makes a new announcement.
   *
   * @param {Message} message
   * @param {boolean} [isReached] whether its receiver has answered: all requests before it have come
   */
  settled(message, isReached = false) {
    const { from, to } = message;
    const path = this.#sent.get(`${from} ${to}`);
    const name = nameOf(message);
    if (!path?.sent.has(name)) return;
    const names = [...path.sent.keys()];
    const earlier = isReached ? names.slice(0, names.indexOf(name)) : [];
    for (const one of [...earlier.filter((one) => typeof one === "number"), name]) path.sent.delete(one);
    const { told } = path;
    if (told && (name === told.last || name === told.top)) told.link.announce(this.behind(from, to, told.link));
  }

  /**
   * Return the announcement line about a pair that a link must send before its next message.
   *
   * @param {string} from
   * @param {string} to
   * @param {Announcer} link
   */
  behind(from, to, link) {
    const line = { p2p: "behind", from, to };
    const path = this.#sent.get(`${from} ${to}`);
    if (path) path.told = null;
    const latest = [...(path?.sent.values() ?? [])].at(-1);
    if (!path || !latest) return line;
    const names = [...path.sent.keys()];
    const top = Math.max(0, ...names.filter((one) => typeof one === "number"));
    const last = names.filter((one) => typeof one === "string").at(-1) ?? top;
    path.told = { last, top, link };
    const age = Math.round((this.#clock.now() - latest.at) * 1000) / 1000;
    const ids = [...path.sent].flatMap(([name, { id }]) => (typeof name === "string" ? [id] : []));
    return { ...line, last, top, age, answers: [...new Set(ids)].sort((a, b) => a - b) };
  }

  /**
   * Deliver the messages that wait for lost ones, before a later message from the node.
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

  /**
   * Return whether a later request or event of the sender has arrived by another route already. Only
   * the node may deliver such a message: a repeat of a lost one, or a stored one.
   *
   * @param {Message} message
   * @param {string} path the link that has brought it; empty: the node
   */
  isLate(message, path) {
    const received = this.#came.get(`${message.from} ${message.to}`);
    if (!received || isResponse(message) || message.id >= received.best) return false;
    return Boolean(path || received.path) && !Number.isInteger(message.body.durable);
  }

  /**
   * @param {Message} message that has come in its turn
   * @param {string} [path] as of `isLate`
   */
  came(message, path = "") {
    const pair = `${message.from} ${message.to}`;
    const received = this.#came.get(pair) ?? { best: 0, path, answers: [] };
    const isNew = isResponse(message) && !received.answers.includes(instanceId(message));
    const answers = isNew ? [...received.answers, instanceId(message)].slice(-ORDER_SENT) : received.answers;
    const isBest = !isResponse(message) && message.id >= received.best;
    this.#came.keep(pair, isBest ? { best: message.id, path, answers } : { ...received, answers });
    this.#releaseDue(kindOf(pair, message), ({ last }) => this.#has(pair, last));
  }

  /**
   * @param {string} pair
   * @param {string | number} key
   */
  #has(pair, key) {
    const received = this.#came.get(pair);
    return typeof key === "number" ? (received?.best ?? 0) >= key : Boolean(received?.answers.includes(key));
  }

  /**
   * Process a peer's announcement, after which messages of the pair may have to wait.
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
    const queue = links.get(link) ?? [];
    const passed = Math.max(numberOf(line.age), 0);
    const bytes = memoryOf(line);
    const isFull = load.bytes + bytes > HELD_BYTES || (!queue.length && load.pairs >= ORDER_WAITS);
    if (this.#has(pair, last) || passed >= REPLY_TIMEOUT || isFull) return this.#release(kind, link, queue.length);
    if (!queue.length) load.pairs += 1;
    else if (!queue[queue.length - 1].held.length) {
      const empty = /** @type {Waiting} */ (queue.pop());
      empty.cancel();
      load.bytes -= empty.bytes;
    }
    /** @type {Waiting} */
    const latest = { last, top: numberOf(line.top), answers: new Set(line.answers), bytes, held: [], cancel: () => {} };
    const release = () => this.#release(kind, link, queue.indexOf(latest) + 1);
    latest.cancel = this.#clock.at(this.#clock.now() + REPLY_TIMEOUT - passed, release);
    queue.push(latest);
    load.bytes += bytes;
    this.#load.set(link, load);
    this.#waiting.set(kind, links.set(link, queue));
  }

  /**
   * Deliver the waiting messages that are due, and those that came by the same link before them.
   *
   * @param {string} kind
   * @param {(one: Waiting) => boolean} isDue
   */
  #releaseDue(kind, isDue) {
    for (const [link, queue] of [...(this.#waiting.get(kind) ?? [])]) {
      this.#release(kind, link, queue.map(isDue).lastIndexOf(true) + 1);
    }
  }

  /**
   * @param {string} kind
   * @param {string} link
   * @param {number} count
   */
  #release(kind, link, count) {
    const links = this.#waiting.get(kind);
    const queue = links?.get(link);
    const load = this.#load.get(link);
    if (!links || !queue || !load) return;
    const released = queue.splice(0, count);
    for (const { cancel, held, bytes } of released) {
      cancel();
      load.held -= held.length;
      load.bytes -= bytes;
    }
    if (!queue.length) {
      links.delete(link);
      if (!links.size) this.#waiting.delete(kind);
      load.pairs -= 1;
      if (!load.pairs) this.#load.delete(link);
    }
    for (const { held } of released) for (const give of held) give();
  }

  /**
   * Deliver a message from a link now or later, in order; false: too many messages wait.
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
