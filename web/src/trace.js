/** The trace of a runtime: the records that `python -m fsm judge` and Spark read. */

import { TRACE_BUFFER } from "./constants.js";
import { blake2b } from "./digest.js";
import { isObject, sorted } from "./json.js";
import { MACHINES } from "./machines.js";
import { codeOf, instanceId, isResponse, requestId, viaOf } from "./message.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./machine.js").Step} Step */
/** @typedef {Readonly<Record<string, string | number | null | undefined>>} Fields */

const SCHEMA = "protofly.trace/1";
const VIA_CHARACTERS = 4096;
const SECRET = new Set([
  ...["via", "auth", "token", "runtimeToken", "secret", "identity", "durable"],
  ...["publicKey", "certificate", "signature", "assertion", "statement"],
]);

/**
 * @param {Json | undefined} value
 * @returns {Json}
 */
function digested(value) {
  if (Array.isArray(value)) return value.map(digested);
  if (!isObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, part]) => part !== undefined && !SECRET.has(key))
      .map(([key, part]) => [key, digested(part)]),
  );
}

/**
 * Return a short hash of a JSON value, the same in all implementations.
 *
 * @param {Json} value
 */
export const valueDigest = (value) => blake2b(sorted(value));

/**
 * Return a short hash of a message's type, sender, receiver and body, equal at every hop.
 *
 * @param {Message} message
 */
export const digest = ({ type, from, to, body }) => valueDigest([type, from, to, digested(body)]);

/** The trace of one runtime: collects records of its events, up to a maximum number. */
export class Trace {
  /** @type {string[]} */
  #lines = [];
  /** @type {WeakMap<Message, string>} */
  #texts = new WeakMap();
  /** @type {Set<(step: Step) => void>} */
  #listeners = new Set();
  #crossed = /** @type {Map<string, number>} */ (new Map());
  #last = 0;
  #undeclared = 0;
  #ended = false;
  #head;

  /**
   * @param {{node: string, keeps?: boolean, limit?: number}} options `keeps`: whether records are
   *   kept; steps are reported to listeners in any case
   */
  constructor({ node, keeps = true, limit = TRACE_BUFFER }) {
    const start = new Date().toISOString().replace(/[-:]/g, "").replace("Z", "000Z");
    const unique = crypto.getRandomValues(new Uint32Array(1))[0].toString(16).padStart(8, "0");
    this.node = node;
    /** Name of this run: its start time in UTC, and a random part. */
    this.run = `${start}-${unique}`;
    this.limit = limit;
    this.keeps = keeps;
    /** Number of records that were not kept. */
    this.dropped = 0;
    this.#head = JSON.stringify({ run: this.run, node }).slice(0, -1);
    const machine = Object.keys(MACHINES).sort().join("|");
    this.record("trace", { k: "start", machine, val: SCHEMA });
  }

  /** Path for the file of this trace, below a directory of traces. */
  get path() {
    const name = encodeURIComponent(this.node).replace(/[!'()*]/g, (one) =>
      `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
    return `run=${this.run}/node=${name}/part-00000.jsonl`;
  }

  /** Number of records. */
  get length() {
    return this.#lines.length;
  }

  /**
   * Add a record.
   *
   * @param {string} actor name of the reporting component
   * @param {Fields} fields as `specs/trace.py` declares them; those without a value are left out
   */
  record(actor, fields) {
    if (this.#hasRoom()) this.#stamp(JSON.stringify({ actor, ...fields }).slice(1));
  }

  /**
   * Add a record about a state machine transition.
   *
   * @param {string} actor
   * @param {Step} step
   */
  step(actor, step) {
    const { machine, key, old, new: entered, cause, why } = step;
    const fields = { machine, key, old, new: entered, cause, why: why || undefined };
    this.record(actor, { k: "state", op: "step", ...fields });
    for (const listener of this.#listeners) listener(step);
  }

  /**
   * Add a record about an event of a message, such as its delivery.
   *
   * @param {string} actor
   * @param {string} op
   * @param {Message} message
   * @param {Fields} [more]
   */
  message(actor, op, message, more = {}) {
    if (!this.#hasRoom()) return;
    let same = this.#texts.get(message);
    if (same === undefined) {
      const via = viaOf(message).join("|").slice(0, VIA_CHARACTERS);
      same = JSON.stringify({
        mid: instanceId(message),
        type: message.type,
        id: message.id,
        from: message.from,
        to: message.to,
        digest: digest(message),
        ref: isResponse(message) ? requestId(message) : undefined,
        code: codeOf(message) || undefined,
        via: via || undefined,
      }).slice(1, -1);
      this.#texts.set(message, same);
    }
    const head = JSON.stringify({ actor, k: "msg", op }).slice(1, -1);
    const rest = JSON.stringify(more).slice(1, -1);
    this.#stamp(`${head},${same}${rest ? `,${rest}` : ""}}`);
  }

  /**
   * Add a record that a message was sent or received by a link; `seq` counts for each link.
   *
   * @param {string} actor
   * @param {"xmit" | "rcv"} op
   * @param {Message} message
   * @param {string} stub
   * @param {string} link
   */
  crossed(actor, op, message, stub, link) {
    if (!this.keeps) return;
    const seq = (this.#crossed.get(`${op} ${link}`) ?? 0) + 1;
    this.#crossed.set(`${op} ${link}`, seq);
    this.message(actor, op, message, { stub, link, seq });
  }

  /**
   * Add a record that a row of a table was added, changed or removed.
   *
   * @param {string} actor
   * @param {"add" | "upd" | "del"} op
   * @param {string} table
   * @param {string} key
   * @param {string} val
   * @param {string} writer
   */
  row(actor, op, table, key, val, writer) {
    this.record(actor, { k: "table", op, key, table, val, writer });
  }

  /**
   * Call a function for each transition from now on, also if no records are kept.
   *
   * @param {(step: Step) => void} listener
   * @returns {() => void} ends the reports
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Add the record that the run has ended in order. Idempotent. */
  end() {
    if (!this.keeps || this.#ended) return;
    this.#ended = true;
    this.#declare();
    this.#stamp(`${JSON.stringify({ actor: "trace", k: "end" }).slice(1)}`);
  }

  /** Return all records, as JSON Lines. */
  text() {
    this.#declare();
    return this.#lines.join("");
  }

  /** Offer the records to the user of the page as a file. */
  download() {
    const url = URL.createObjectURL(new Blob([this.text()], { type: "application/jsonl" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = this.path.replace(/\//g, "+");
    link.click();
    URL.revokeObjectURL(url);
  }

  #hasRoom() {
    if (!this.keeps || this.#ended) return false;
    if (this.#lines.length < this.limit) return true;
    this.dropped += 1;
    this.#undeclared += 1;
    return false;
  }

  #declare() {
    if (!this.#undeclared) return;
    const count = this.#undeclared;
    this.#undeclared = 0;
    this.#stamp(JSON.stringify({ actor: "trace", k: "dropped", count }).slice(1));
  }

  /** @param {string} fields */
  #stamp(fields) {
    const mono = performance.now();
    const wall = Math.round((performance.timeOrigin + mono) * 1000);
    this.#last += 1;
    this.#lines.push(
      `${this.#head},"ln":${this.#last},"wall_ns":${wall}000,"mono_ns":${Math.round(mono * 1000)}000,` +
        `"t":${(mono / 1000).toFixed(6)},${fields}\n`,
    );
  }
}
