/** The interface for the code of a hyperty, the same in a Worker and in the page. */

import { canonical, inboxOf, registrationOf, schemeOf } from "./address.js";
import { ANSWER_WITHIN_MOST, BODY_BYTES, CODES, PROGRESS_PERIOD } from "./constants.js";
import { BadMessageError, byteLength, checkSize, isObject, jsonOf } from "./json.js";
import {
  codeOf, isRequest, isSuccess, keyGivenUp, keyOf, normalise, reasonIn, refuse, replyTo,
} from "./message.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./message.js").MessageType} MessageType */
/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */

/**
 * The functions of the runtime that a hyperty may call.
 * @typedef {object} Outlet
 * @property {(message: Message) => void} post
 * @property {(message: Message, terms?: {provisional?: (message: Message) => void}) =>
 *   Promise<Message>} request
 * @property {(from: string) => number} nextId
 * @property {string} [registry] address of the registry of the runtime, where its code runs
 * @property {() => Promise<import("./objects.js").Objects>} [objects] where its code runs
 */

/**
 * The code of a hyperty. `request` returns the value of the answer, or throws to refuse a request;
 * its signal is aborted when the requester has given up, and what it returns then goes nowhere, or
 * when the time is over that the requester has named, or `answerWithin` in seconds.
 * `subscribe` lets a hyperty observe an object, `invited` takes an invitation to one.
 * @typedef {object} Code
 * @property {(hyperty: Hyperty) => unknown} [started]
 * @property {number} [answerWithin]
 * @property {(message: Message, hyperty: Hyperty, signal: AbortSignal) => unknown} [request]
 * @property {(message: Message, hyperty: Hyperty) => unknown} [event]
 * @property {(asked: {object: string, observer: string, identity?: import("./message.js").SenderIdentity},
 *   hyperty: Hyperty) => unknown} [subscribe]
 * @property {(invitation: {object: string, reporter: string, schema: string, value: Json},
 *   hyperty: Hyperty) => unknown} [invited]
 */

/** The error that a refused request raises; code that throws it refuses the request it handles. */
export class Refusal extends Error {
  /**
   * @param {number} code one of the reply codes
   * @param {string} reason
   * @param {number | null} [retryAfter]
   */
  constructor(code, reason, retryAfter = null) {
    super(reason ? `${code} ${reason}` : String(code));
    this.name = "Refusal";
    this.code = code;
    this.reason = reason;
    this.retryAfter = retryAfter;
  }
}

/**
 * Call a function that reads a user's value; convert its error about the value to a refusal.
 *
 * @template T
 * @param {() => T} act
 * @param {number} [code] of what is malformed
 */
export function checked(act, code = CODES.MALFORMED) {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof BadMessageError)) throw error;
    throw new Refusal(error.code === CODES.MALFORMED ? code : error.code, error.message);
  }
}

/**
 * Return a copy of a body as a receiver would read it; refuse a body that is too large or no JSON.
 *
 * @param {JsonObject} body
 * @returns {JsonObject}
 */
function carried(body) {
  const text = jsonOf(body);
  if (text.length > BODY_BYTES || byteLength(text) > BODY_BYTES) {
    throw new BadMessageError(`a body has at most ${BODY_BYTES} bytes`, CODES.TOO_LARGE);
  }
  const copy = JSON.parse(text);
  // The message around the body is one more level of nesting.
  checkSize(copy, 1);
  return copy;
}

/** A hyperty: its address, and the functions by which it sends. */
export class Hyperty {
  #outlet;
  /** @type {import("./objects.js").Objects | null} */
  #objects = null;
  /** Who follows each record; `last`: its status, if one is known.
   * @type {Map<string, {last?: string | null, reports: Set<{report: import("./registry.js").Report}>}>} */
  #followed = new Map();
  /** How many provisional answers a request has got. @type {WeakMap<Message, number>} */
  #progress = new WeakMap();
  /** Requests that are being handled, by their keys. @type {Map<string, AbortController>} */
  #handled = new Map();

  /**
   * @param {string} url
   * @param {string} name
   * @param {Outlet} outlet
   */
  constructor(url, name, outlet) {
    this.url = url;
    this.name = name;
    this.#outlet = outlet;
  }

  /**
   * Send a request and return the value of the answer.
   *
   * @param {string} to
   * @param {Json} [value]
   * @param {{type?: MessageType, body?: JsonObject, provisional?: (message: Message) => void,
   *   signal?: AbortSignal, answerWithin?: number}} [options] `body`: further fields of the body;
   *   `signal`: gives it up; `answerWithin`: seconds that the answer is awaited, 600 at most
   * @returns {Promise<Json>}
   */
  async request(to, value, { type = "create", body = {}, ...terms } = {}) {
    const answer = await this.ask(type, to, value === undefined ? body : { value, ...body }, terms);
    if (isSuccess(answer)) return answer.body.value ?? null;
    const { retryAfter } = answer.body;
    const seconds = typeof retryAfter === "number" ? retryAfter : null;
    throw new Refusal(codeOf(answer), reasonIn(answer), seconds);
  }

  /**
   * Send a request and return the whole final answer, also if it is a refusal.
   *
   * If `signal` is aborted, the request is given up: its receiver is told, and the reason is thrown.
   *
   * @param {MessageType} type
   * @param {string} to
   * @param {JsonObject} body
   * @param {{provisional?: (message: Message) => void, signal?: AbortSignal, answerWithin?: number}} [terms]
   * @returns {Promise<Message>}
   */
  async ask(type, to, body, { provisional, signal, answerWithin } = {}) {
    signal?.throwIfAborted();
    const isTimed = answerWithin !== undefined;
    if (isTimed && !(typeof answerWithin === "number" && answerWithin > 0 && answerWithin <= ANSWER_WITHIN_MOST)) {
      throw new RangeError(`answerWithin must be above 0 and at most ${ANSWER_WITHIN_MOST} seconds, not ${answerWithin}`);
    }
    const id = this.#outlet.nextId(this.url);
    const message = { id, type, from: this.url, to, body: isTimed ? { ...body, answerWithin } : body };
    if (!isRequest(message)) throw new TypeError(`nobody answers an event: ${type} to ${to}`);
    /** @type {() => void} */
    let abort = () => {};
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    try {
      const sent = checked(() => normalise({ ...message, body: carried(message.body) }));
      const asked = this.#outlet.request(sent, { provisional });
      if (!signal && !isTimed) return this.#ended(message, await asked);
      const ended = new Promise((resolve, reject) => {
        abort = () => reject(signal?.reason);
        signal?.addEventListener("abort", abort);
        const late = () => resolve(refuse(message, CODES.TIMEOUT, `no answer in ${answerWithin} s`));
        if (isTimed) timer = setTimeout(late, 1000 * answerWithin);
      });
      return this.#ended(message, await Promise.race([asked, ended]));
    } catch (error) {
      if (isRefusal(error)) return refuse(message, error.code, error.reason, error.retryAfter);
      if (signal?.aborted) this.#giveUp(message);
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
      clearTimeout(timer);
    }
  }

  /**
   * Return the answer to a request; if the bus has made it, as none came in time, give it up.
   *
   * @param {Message} request
   * @param {Message} answer
   */
  #ended(request, answer) {
    if (codeOf(answer) === CODES.TIMEOUT && !answer.identity) this.#giveUp(request);
    return answer;
  }

  /**
   * Tell the hyperty that handles a request that nobody waits for its answer.
   *
   * @param {Message} request
   */
  #giveUp({ id: givenUp, to }) {
    if (schemeOf(to) !== "hyperty") return;
    const id = this.#outlet.nextId(this.url);
    this.#outlet.post({ id, type: "create", from: this.url, to: inboxOf(to), body: { givenUp } });
  }

  /**
   * Send an event, which gets no answer, to the inbox of another hyperty.
   *
   * @param {string} to address of the hyperty
   * @param {Json} value
   */
  send(to, value) {
    const id = this.#outlet.nextId(this.url);
    const body = checked(() => carried({ value }));
    this.#outlet.post({ id, type: "create", from: this.url, to: inboxOf(to), body });
  }

  /**
   * Report a new data object.
   *
   * @param {string} schema such as `comm`
   * @param {JsonObject} value
   * @param {{name?: string, resources?: string[], allow?: string[], public?: boolean,
   *   observers?: string[]}} [options] `allow`: who may observe without a question; `observers`:
   *   who is invited; `public`: whether everybody may
   * @returns {Promise<import("./objects.js").ReportedObject>}
   */
  async report(schema, value, options = {}) {
    return (await this.loadObjects()).report(schema, value, options);
  }

  /**
   * Observe a data object; it has its value from the beginning.
   *
   * @param {string} url
   * @param {{p2p?: boolean}} [options] whether its changes come by a direct link only, or never
   * @returns {Promise<import("./objects.js").ObservedObject>}
   */
  async observe(url, options = {}) {
    return (await this.loadObjects()).observe(url, options);
  }

  /**
   * Follow the status of a record of a hyperty or data object: it is reported now, and each time
   * that it changes.
   *
   * @param {string} url
   * @param {import("./registry.js").Report} report
   * @returns {Promise<() => Promise<void>>} ends that
   */
  async follow(url, report) {
    const { registry } = this.#outlet;
    if (!registry) throw new TypeError("this hyperty follows records in its Worker; a page follows them by its runtime");
    const record = canonical(url);
    const body = { resources: [registrationOf(record)] };
    const followed = this.#followed.get(record) ?? { reports: new Set() };
    this.#followed.set(record, followed);
    const { reports, last } = followed;
    const follower = { report };
    reports.add(follower);
    if (last !== undefined) queueMicrotask(() => report(last));
    const leave = async () => {
      if (!reports.delete(follower) || reports.size) return;
      this.#followed.delete(record);
      await this.ask("unsubscribe", registry, body);
    };
    const answer = await this.ask("subscribe", registry, body);
    if (isSuccess(answer)) return leave;
    void leave();
    throw new Refusal(codeOf(answer), reasonIn(answer));
  }

  /**
   * Report the status of a followed record to those who follow it.
   *
   * @param {string} record
   * @param {string | null} status
   */
  told(record, status) {
    const followed = this.#followed.get(record);
    if (!followed) return;
    followed.last = status;
    for (const { report } of followed.reports) {
      try {
        report(status);
      } catch (error) {
        console.error(`protofly: ${this.name} failed on a status`, error);
      }
    }
  }

  /** Load the code of data objects. */
  async loadObjects() {
    const { objects } = this.#outlet;
    if (!objects) throw new TypeError("this hyperty has its data objects in its Worker");
    this.#objects ??= await objects();
    return this.#objects;
  }

  /**
   * Send a provisional answer to a request; the final answer comes later.
   *
   * @param {Message} request
   * @param {Json} [value]
   */
  progress(request, value) {
    const sequence = (this.#progress.get(request) ?? 0) + 1;
    this.#progress.set(request, sequence);
    this.#outlet.post(replyTo(request, CODES.PROGRESS, checked(() => carried({ value, sequence }))));
  }

  /**
   * Let the code of this hyperty handle a message, and answer it if it is a request.
   *
   * @param {Code} code
   * @param {Message} message
   */
  async handle(code, message) {
    if (this.#objects?.take(message, code, this)) return;
    const givenUp = keyGivenUp(message);
    if (givenUp) return this.#handled.get(givenUp)?.abort();
    if (!isRequest(message)) {
      try {
        await code.event?.(message, this);
      } catch (error) {
        console.error(`protofly: ${this.name} failed on an event`, error);
      }
      return;
    }
    const control = new AbortController();
    this.#handled.set(keyOf(message), control);
    const limit = limitOf(message, code);
    const seconds = limit ?? Infinity;
    const timers = limit === null ? [] : [
      setInterval(() => this.progress(message), 1000 * PROGRESS_PERIOD),
      setTimeout(() => control.abort(new Refusal(CODES.TIMEOUT, `its handler has not ended within ${seconds} s`)), 1000 * seconds),
    ];
    try {
      await this.decide(message, () => {
        if (!code.request) throw new Refusal(CODES.MALFORMED, "this hyperty takes no requests");
        const { signal } = control;
        const result = code.request(message, this, signal);
        if (limit === null) return result;
        const late = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        return Promise.race([result, late]);
      }, control.signal);
    } finally {
      this.#handled.delete(keyOf(message));
      for (const timer of timers) clearTimeout(timer);
    }
  }

  /**
   * Answer a request with the result of a function, or with the refusal that it throws.
   *
   * @param {Message} message
   * @param {() => unknown} act
   * @param {AbortSignal} [signal] is aborted when the requester has given up
   */
  async decide(message, act, signal) {
    this.#outlet.post(await this.#answer(message, act, signal));
  }

  /**
   * @param {Message} message
   * @param {() => unknown} act
   * @param {AbortSignal} [signal]
   * @returns {Promise<Message>}
   */
  async #answer(message, act, signal) {
    try {
      const value = /** @type {Json | undefined} */ (await act());
      return replyTo(message, CODES.OK, checked(() => carried({ value }), CODES.INTERNAL));
    } catch (error) {
      if (signal?.aborted) {
        return refuse(message, CODES.TIMEOUT, isRefusal(signal.reason) ? signal.reason.reason : "it was given up");
      }
      let flaw = error;
      if (isRefusal(error)) {
        const answer = refuse(message, error.code, error.reason, error.retryAfter);
        try {
          return { ...answer, body: carried(answer.body) };
        } catch (unsendable) {
          flaw = unsendable;
        }
      }
      console.error(`protofly: ${this.name} failed on a request`, flaw);
      return refuse(message, CODES.INTERNAL, "the hyperty failed");
    }
  }
}

/**
 * Return the seconds that a request may take; null: any time.
 *
 * @param {Message} message
 * @param {Code} code
 */
function limitOf({ body: { answerWithin } }, code) {
  const wish = typeof answerWithin === "number" && answerWithin > 0 ? answerWithin : code.answerWithin;
  return wish === undefined ? null : Math.min(wish, ANSWER_WITHIN_MOST);
}

/**
 * @param {unknown} error
 * @returns {error is Refusal}
 */
const isRefusal = (error) =>
  isObject(error) && error.name === "Refusal" &&
  /** @type {unknown[]} */ (Object.values(CODES)).includes(error.code);

/**
 * Return the code object of a hyperty, from an object, a class, or a function that makes one.
 *
 * @param {unknown} exported
 * @param {Hyperty} hyperty
 * @returns {Code}
 */
export function codeFrom(exported, hyperty) {
  if (isObject(exported)) return /** @type {Code} */ (/** @type {unknown} */ (exported));
  if (typeof exported !== "function") throw new TypeError("the code of a hyperty is an object or a class");
  const isClass = /^class\b/.test(Function.prototype.toString.call(exported));
  return isClass ? Reflect.construct(exported, [hyperty]) : exported(hyperty);
}
