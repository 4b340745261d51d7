/** Host of a sandbox: starts a Worker with the untrusted code of one hyperty, and limits it. */

import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { isBelow } from "./address.js";
import { Alarm } from "./clock.js";
import { BadMessageError, headOf, isObject } from "./json.js";
import { Shares, TokenBucket } from "./limits.js";
import { badLine, isFinal, isRequest, isResponse, keyOf, peerOf, readLine, refuse } from "./message.js";
import { SANDBOX, SandboxError } from "./worker.js";

/** @typedef {import("./message.js").Message} Message */

/**
 * @typedef {object} SandboxOptions
 * @property {string} url address of the hyperty
 * @property {string} name
 * @property {string} source its code: an ES module without imports
 * @property {string | URL} worker this module, as the browser loads it for a Worker
 * @property {() => Promise<string>} objects gets the module of data objects, as a Worker loads it
 * @property {(why: string) => void} onEnded
 */

/** One Worker with the code of a hyperty; a listener that passes messages to the Worker. */
export class Sandbox {
  #tools;
  #port;
  #options;
  #worker;
  #channel = new MessageChannel();
  #alarm;
  #bucket = new TokenBucket(constants.SANDBOX_RATE, constants.SANDBOX_BURST);
  /** Messages that the Worker may still post. */
  #credits = constants.SUBMITTED;
  /** Credits that are returned to the Worker when its rate permits. */
  #owed = 0;
  #waiting = 0;
  #beatAt = Infinity;
  #silentAt = Infinity;
  #creditAt = Infinity;
  #isOver = false;
  /** Requests that were delivered and are not answered. @type {Map<string, Message>} */
  #outstanding = new Map();
  #shares = new Shares(constants.MAILBOX);
  /** Status of followed records that the Worker was not told yet. @type {Map<string, string | null>} */
  #statuses = new Map();
  #isTelling = false;
  #hasStarted = false;
  #hasLoaded = false;
  /** @type {(why: string | null) => void} */
  #started = () => {};

  /**
   * @param {import("./bus.js").Tools} tools
   * @param {import("./bus.js").Port} port
   * @param {SandboxOptions} options
   */
  constructor(tools, port, options) {
    this.#tools = tools;
    this.#port = port;
    this.#options = options;
    this.name = options.url;
    this.#alarm = new Alarm(tools.clock, () => this.#tick());
    this.#worker = new Worker(options.worker, { type: "module", name: SANDBOX });
    this.#worker.onerror = (event) => this.#end(event.message || "its Worker could not be loaded");
    this.#channel.port1.onmessage = ({ data }) => this.#heard(data);
  }

  /** Start the code, and wait until it has started. */
  async start() {
    const { url, name, source } = this.#options;
    const port = this.#channel.port2;
    const id = this.#tools.ids.halve(url);
    const { runtime } = this.#tools;
    const start = { do: "start", url, runtime, name, source, credits: constants.SUBMITTED, id, port };
    const started = new Promise((resolve) => (this.#started = resolve));
    this.#worker.postMessage(start, [port]);
    const now = this.#tools.clock.now();
    this.#silentAt = now + constants.DEPLOY_TIMEOUT;
    this.#schedule();
    const why = await started;
    if (why !== null) throw new SandboxError(`${name} does not start: ${why}`);
    this.#beatAt = this.#tools.clock.now() + constants.SANDBOX_BEAT;
    this.#silentAt = Infinity;
    this.#schedule();
  }

  /** @param {Message} message */
  take(message) {
    if (this.#isOver || this.#waiting >= constants.MAILBOX) return false;
    // Messages about observed data objects need no answer of the Worker: the sync manager answers.
    if (isRequest(message) && isBelow(message.to, this.name)) {
      const key = keyOf(message);
      this.#settled(key);
      if (!this.#shares.enter(peerOf(message))) return false;
      this.#outstanding.set(key, message);
    }
    this.#waiting += 1;
    this.#channel.port1.postMessage({ do: "deliver", text: JSON.stringify(message) });
    return true;
  }

  /**
   * Send the Worker the status of a record that it follows; a slow Worker gets only the last one.
   *
   * @param {string} record
   * @param {string | null} status
   */
  tell(record, status) {
    this.#statuses.set(record, status);
    this.#tellNext();
  }

  #tellNext() {
    const [next] = this.#statuses;
    if (!next || this.#isTelling || this.#isOver) return;
    const [url, status] = next;
    this.#statuses.delete(url);
    this.#isTelling = true;
    this.#channel.port1.postMessage({ do: "status", url, status });
  }

  /** @param {string} key of a request, or of the answer to it */
  #settled(key) {
    const request = this.#outstanding.get(key);
    if (!request) return;
    this.#outstanding.delete(key);
    this.#shares.leave(peerOf(request));
  }

  // ---- messages from the Worker, which are not trusted

  /** @param {unknown} data */
  #heard(data) {
    if (this.#isOver) return;
    const word = isObject(data) ? data : {};
    if (word.do === "post" && typeof word.text === "string") this.#posted(word.text);
    else if (word.do === "taken" && this.#waiting) this.#waiting -= 1;
    else if (word.do === "told" && this.#isTelling) {
      this.#isTelling = false;
      this.#tellNext();
    } else if (word.do === "beat" && this.#beatAt === Infinity && this.#hasStarted) {
      this.#silentAt = Infinity;
      this.#beatAt = this.#tools.clock.now() + constants.SANDBOX_BEAT;
      this.#schedule();
    } else if (word.do === "started" && !this.#hasStarted) {
      this.#hasStarted = true;
      this.#started(null);
    } else if (word.do === "load" && !this.#hasLoaded) {
      this.#hasLoaded = true;
      void this.#load();
    } else if (word.do === "failed") this.#end(typeof word.why === "string" ? word.why.slice(0, 500) : "it failed");
    // The browser does not limit such messages, so a flood of them ends the Worker.
    else this.#end("it says what nobody has asked for");
  }

  async #load() {
    let reply;
    try {
      reply = { text: await this.#options.objects() };
    } catch (error) {
      reply = { why: String(error) };
    }
    if (!this.#isOver) this.#channel.port1.postMessage({ do: "loaded", ...reply });
  }

  /** @param {string} text */
  #posted(text) {
    if (this.#credits <= 0) return this.#end("it posts more than it may");
    this.#credits -= 1;
    this.#owed += 1;
    this.#repay();
    const tooLarge = new BadMessageError("it is too large", CODES.TOO_LARGE);
    let message = text.length > constants.MAX_MESSAGE_BYTES ? badLine(headOf(text.slice(0, constants.MAX_MESSAGE_BYTES)), tooLarge) : readLine(text);
    if ("error" in message) {
      this.#tools.counters.drop(DROPS.MALFORMED, this.name);
      if (!message.replacement) return this.#answerBad(text, message.error);
      message = message.replacement;
    }
    const { identity: _, ...plain } = message;
    if (isResponse(plain)) {
      if (isFinal(plain)) this.#settled(keyOf(plain));
      this.#port.post(plain);
    } else if (isRequest(plain)) {
      void this.#port
        .request(plain, { provisional: (answer) => this.#answer(answer, false) })
        .then((answer) => this.#answer(answer, true));
    } else this.#port.post(plain);
  }

  /**
   * Answer a malformed message of the Worker, if it has an id, so that nobody waits for ever.
   *
   * @param {string} text
   * @param {BadMessageError} error
   */
  #answerBad(text, error) {
    const id = Number(/^\{"id":([0-9]{1,16})[,}]/.exec(text)?.[1]);
    if (!Number.isSafeInteger(id)) return;
    const { url } = this.#options;
    this.#answer(refuse({ id, type: "read", from: url, to: url, body: {} }, error.code, error.message), true);
  }

  /**
   * @param {Message} answer
   * @param {boolean} isFinalAnswer
   */
  #answer(answer, isFinalAnswer) {
    if (this.#isOver) return;
    this.#channel.port1.postMessage({ do: "answer", text: JSON.stringify(answer), isFinal: isFinalAnswer });
  }

  #repay() {
    const now = this.#tools.clock.now();
    let count = 0;
    while (this.#owed && this.#bucket.trySpend(now)) {
      this.#owed -= 1;
      count += 1;
    }
    this.#creditAt = this.#owed ? now + this.#bucket.pause(now) : Infinity;
    if (count) {
      this.#credits += count;
      this.#channel.port1.postMessage({ do: "credit", count });
    }
    this.#schedule();
  }

  // ---- time and the end

  #schedule() {
    const at = Math.min(this.#beatAt, this.#silentAt, this.#creditAt);
    this.#alarm.set(this.#isOver ? Infinity : at);
  }

  #tick() {
    const now = this.#tools.clock.now();
    if (now >= this.#creditAt) this.#repay();
    if (now >= this.#beatAt) {
      this.#beatAt = Infinity;
      this.#silentAt = now + constants.SANDBOX_SILENCE;
      this.#channel.port1.postMessage({ do: "beat" });
    }
    if (now >= this.#silentAt) {
      // This page was busy: messages of the Worker may not have been read yet.
      if (now <= this.#silentAt + constants.LATE) return this.#end("it does not answer");
      this.#silentAt = now + constants.SANDBOX_SILENCE;
    }
    this.#schedule();
  }

  /** @param {string} why */
  #end(why) {
    if (this.#isOver) return;
    this.close();
    this.#started(why);
    for (const request of this.#outstanding.values()) {
      this.#port.post(refuse(request, CODES.UNAVAILABLE, "the receiver is gone"));
    }
    this.#outstanding.clear();
    this.#options.onEnded(why);
  }

  /** End the Worker at once. Idempotent. */
  close() {
    this.#isOver = true;
    this.#worker.terminate();
    this.#channel.port1.close();
    this.#schedule();
  }
}
