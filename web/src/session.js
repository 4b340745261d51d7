/**
 * The session of a runtime with its node, as a state machine without I/O; see
 * `fsm/session/stub_client.py`.
 */

import { domainOf, isBackend, isBelow } from "./address.js";
import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { TokenBucket } from "./limits.js";
import { Entity } from "./machine.js";
import { isRequest } from "./message.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {"open" | "re-open" | "close" | "ping" | "renew"} Method */
/** @typedef {{perSecond: number, burst: number}} Rate */

/**
 * The answer of the node to a session control. `isLasting`: another attempt is useless.
 * `isPassing`: the node has stated when to try again. `login`: the login token that was sent.
 * @typedef {{method: Method, code: number, token?: string | null, why?: string,
 *   isEmptied?: boolean, isLasting?: boolean, isPassing?: boolean, login?: string,
 *   challenge?: string | null, rate?: Rate | null}} Answer
 */

/**
 * The commands of the state machine, which its host executes.
 * @typedef {object} StubPort
 * @property {(step: import("./machine.js").Step) => void} step
 * @property {() => void} dial `dialled` or `loseLink` follows
 * @property {() => void} hangUp stops to dial, or closes the link; nothing follows
 * @property {(method: Method, token: string | null, challenge: string | null) => void} ask
 * @property {(message: Message) => void} write `noteWritten` follows, or `forget`
 * @property {(message: Message) => void} queued it waits for the session
 * @property {(message: Message) => void} released it waits no longer
 * @property {(message: Message, code: number, why: string, retryAfter: number | null) => void} refuse
 * @property {(message: Message, reason: string) => void} drop
 * @property {() => void} ended
 */

/** Bounded queues of messages: those that wait for the session, and those being written. */
class Outbox {
  #port;
  /** @type {Message[]} */
  #waiting = [];
  /** @type {Message[]} */
  #unwritten = [];
  /** @type {Message[]} */
  #held = [];
  /** @type {Rate | null} */
  rate = null;
  /** @type {TokenBucket | null} */
  #bucket = null;

  /** @param {StubPort} port */
  constructor(port) {
    this.#port = port;
  }

  get length() {
    return this.#waiting.length + this.#held.length;
  }

  /** Whether messages are held back. */
  get isHolding() {
    return this.#held.length > 0;
  }

  get hasRoom() {
    return this.length < constants.STUB_QUEUE;
  }

  /** @param {(message: Message) => boolean} mayGo */
  hold(mayGo) {
    this.#held.push(...this.#waiting.filter((message) => !mayGo(message)));
    this.#waiting = this.#waiting.filter(mayGo);
  }

  /** @param {Message} message */
  holdBack(message) {
    if (!this.hasRoom) return this.overflow(message, constants.STUB_QUEUE);
    this.#held.push(message);
    this.#port.queued(message);
  }

  /** Queue the messages that were held back. */
  endHold() {
    this.#waiting.push(...this.#held.splice(0));
  }

  refuseHeld() {
    for (const message of this.#held.splice(0)) {
      this.#port.released(message);
      this.refuseUnrenewed(message);
    }
  }

  /** @param {Message} message */
  wait(message) {
    this.#waiting.push(message);
    this.#port.queued(message);
  }

  /** @param {Rate | null} rate what a node accepts; null: it did not say */
  keepTo(rate) {
    if (rate?.perSecond === this.rate?.perSecond && rate?.burst === this.rate?.burst) return;
    this.rate = rate;
    this.#bucket =
      rate &&
      new TokenBucket(rate.perSecond * constants.PACE_SHARE, Math.max(1, Math.trunc(rate.burst * constants.PACE_SHARE)));
  }

  /** @param {number} now */
  #maySend(now) {
    return this.#bucket === null || this.#bucket.trySpend(now);
  }

  /**
   * @param {Message} message
   * @param {number} now
   */
  write(message, now) {
    if (this.#unwritten.length >= constants.OUTBOX_MESSAGES) return this.overflow(message, constants.OUTBOX_MESSAGES);
    if (!this.#waiting.length && this.#maySend(now)) {
      this.#unwritten.push(message);
      return this.#port.write(message);
    }
    if (this.hasRoom) return this.wait(message);
    const delay = this.rate ? this.#waiting.length / this.rate.perSecond : constants.RETRY_AFTER;
    this.overflow(message, constants.STUB_QUEUE, delay);
  }

  /** @param {number} now */
  pause(now) {
    if (!this.#waiting.length || !this.#bucket) return Infinity;
    return Math.max(this.#bucket.pause(now), constants.PACE_SLICE);
  }

  /** @param {number} count */
  written(count) {
    this.#unwritten.splice(0, count);
  }

  /** @param {Message} message */
  unwritable(message) {
    const at = this.#unwritten.indexOf(message);
    if (at >= 0) this.#unwritten.splice(at, 1);
  }

  /** @param {number} now */
  flush(now) {
    while (this.#waiting.length && this.#maySend(now)) {
      const message = /** @type {Message} */ (this.#waiting.shift());
      this.#unwritten.push(message);
      this.#port.released(message);
      this.#port.write(message);
    }
  }

  /** Put the messages that a broken link did not send before those that wait for the session. */
  keep() {
    const kept = this.#unwritten.splice(0);
    this.#waiting.unshift(...kept);
    this.endHold();
    for (const message of kept) this.#port.queued(message);
  }

  /**
   * @param {string} why
   * @param {number} [code]
   * @param {number | null} [retryAfter]
   */
  refuseAll(why, code = CODES.UNAVAILABLE, retryAfter = null) {
    this.endHold();
    for (const message of this.#waiting.splice(0)) {
      this.#port.released(message);
      this.refuse(message, code, why, retryAfter);
    }
  }

  /**
   * End a message that cannot be sent: answer a request, drop any other message.
   *
   * @param {Message} message
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   * @param {string} [reason] of the drop of what is no request
   */
  refuse(message, code, why, retryAfter = null, reason = DROPS.SESSION_GONE) {
    if (isRequest(message)) this.#port.refuse(message, code, why, retryAfter);
    else this.#port.drop(message, reason);
  }

  /** @param {Message} message */
  refuseUnrenewed(message) {
    const why = "the message node has been started again, and has not everything back yet";
    this.refuse(message, CODES.UNAVAILABLE, why, constants.RETRY_AFTER);
  }

  /**
   * @param {Message} message
   * @param {number} limit
   * @param {number} [delay]
   */
  overflow(message, limit, delay = constants.RETRY_AFTER) {
    const why = `${limit} messages wait for the message node already`;
    this.refuse(message, CODES.UNAVAILABLE, why, delay, DROPS.OVERFLOW);
  }
}

/** Pauses between attempts to connect: none before the first, then they double. */
class Backoff {
  #tries = 0;
  #relapses = 0;

  get isOver() {
    return this.#tries >= constants.RECONNECT_TRIES;
  }

  attempt() {
    this.#tries = Math.min(this.#tries + 1, constants.RECONNECT_TRIES);
  }

  succeed() {
    this.#tries = 0;
  }

  /** @param {number} lasted seconds that the lost link lasted; a short one is no success */
  lost(lasted) {
    if (lasted >= constants.RECONNECT_BASE) {
      this.#relapses = 0;
      return;
    }
    this.#tries = this.#relapses;
    this.#relapses = Math.min(this.#relapses + 1, constants.RECONNECT_TRIES);
  }

  /** @param {number} jitter between 0 and 1 */
  pause(jitter) {
    if (this.#tries === 0) return 0;
    return constants.RECONNECT_BASE * 2 ** (this.#tries - 1) * (0.5 + jitter / 2);
  }
}

const TALKING = ["renewing", "open", "pinging"];
/** Verbs of the requests by which a runtime restores its addresses, subscriptions and records. */
const RENEWALS = ["subscribe", "create", "update"];
const ASKING = ["opening", "proving"];
/** Codes of answers to a re-open that mean that the session does not exist any more. */
const FORGOTTEN = /** @type {number[]} */ ([CODES.GONE, CODES.UNAUTHENTICATED, CODES.NOT_FOUND]);
const TURNED_AWAY = /** @type {number[]} */ ([CODES.UNAUTHENTICATED, CODES.FORBIDDEN]);
/** Seconds after which a missing statement is asked for again. */
const STATEMENT_RETRY = 60;

/** State of a node stub: its connection and its link, by the state machines of these names. */
export class StubClient {
  #connection;
  #link;
  #port;
  #outbox;
  #backoff = new Backoff();
  #jitter;
  /** @type {string | null} */
  #token;
  #until = Infinity;
  #giveUp = Infinity;
  #lastLoss = "";
  #tried = -Infinity;
  #since = -Infinity;
  #renewAt = Infinity;
  #sliceAt = Infinity;
  #holdUntil = Infinity;
  /** Number of the last session in which the runtime has renewed its claims. */
  #renewed = 0;
  /** @type {string | null} */
  #owner;
  /** The time at which each login was refused first. @type {Map<string, number>} */
  #refusedLogins = new Map();
  /** @type {number | null} */
  #endCode = null;

  /**
   * @param {string} url address of the stub
   * @param {StubPort} port
   * @param {() => number} jitter between 0 and 1
   * @param {string | null} [token] of a session that an earlier stub had: it is re-opened
   * @param {string | null} [owner] the runtime, if it has addresses at the node
   */
  constructor(url, port, jitter, token = null, owner = null) {
    this.#owner = owner;
    this.#connection = new Entity("stub_connection", url);
    this.#link = new Entity("node_link", url);
    this.#port = port;
    this.#outbox = new Outbox(port);
    this.#jitter = jitter;
    this.#token = token;
    /** Number of sessions that are new, or whose state the node has lost. */
    this.sessions = 0;
  }

  get state() {
    return this.#connection.state;
  }

  get link() {
    return this.#link.state;
  }

  get hasSession() {
    return this.#token !== null;
  }

  get queued() {
    return this.#outbox.length;
  }

  get #isTalking() {
    return TALKING.includes(this.link ?? "");
  }

  /** Make the first transition: the stub is created. */
  begin() {
    this.#move("constructed");
  }

  /**
   * @param {string} trigger of the connection
   * @param {string} [why]
   */
  #move(trigger, why) {
    this.#port.step(this.#connection.step(trigger, why));
  }

  /**
   * @param {string} trigger of the link
   * @param {string} [why]
   */
  #moveLink(trigger, why) {
    this.#port.step(this.#link.step(trigger, why));
  }

  /** When `timeOver` is due. */
  get deadline() {
    const hold = this.#outbox.isHolding ? this.#holdUntil : Infinity;
    const slice = this.#isTalking ? this.#sliceAt : Infinity;
    return Math.min(this.#until, this.#giveUp, this.#renewAt, slice, hold);
  }

  // ---- messages

  /**
   * @param {Message} message
   * @param {number} now seconds on the host's clock
   */
  send(message, now) {
    const outbox = this.#outbox;
    if (this.link === "renewing" && !this.#isRenewal(message)) {
      return now >= this.#holdUntil ? outbox.refuseUnrenewed(message) : outbox.holdBack(message);
    }
    if (this.#isTalking) {
      outbox.write(message, now);
      return this.#setSlice(now);
    }
    if (this.#endCode !== null) return outbox.refuse(message, this.#endCode, this.#lastLoss);
    if (this.link === "ended" || this.link === "closing" || this.state === "failed") {
      return outbox.refuse(message, CODES.UNAVAILABLE, "the stub is closed", constants.RETRY_COOL_DOWN);
    }
    if (this.link === "paused" && this.#backoff.isOver && now < this.#tried + constants.RECONNECT_BASE) {
      const pause = this.#tried + constants.RECONNECT_BASE - now;
      return outbox.refuse(message, CODES.UNAVAILABLE, "the message node cannot be reached", pause);
    }
    if (!outbox.hasRoom) return outbox.overflow(message, constants.STUB_QUEUE);
    outbox.wait(message);
    this.connect(now);
  }

  /** @param {number} count how many messages the link has written */
  noteWritten(count) {
    this.#outbox.written(count);
  }

  /** @param {Message} message that the link cannot write */
  forget(message) {
    this.#outbox.unwritable(message);
  }

  /**
   * Return whether a message restores addresses, subscriptions or records at the node.
   *
   * @param {Message} message
   */
  #isRenewal({ type, from, to, body: { source } }) {
    const owner = this.#owner ?? "";
    const isOwn = source === undefined || (typeof source === "string" && isBelow(source, owner));
    return RENEWALS.includes(type) && isBelow(from, owner) && isOwn &&
      isBackend(to) && domainOf(to) === domainOf(owner);
  }

  /**
   * Send the messages that waited until the runtime had restored its state in a new session.
   *
   * @param {number} session
   * @param {number} now
   */
  endRenewal(session, now) {
    this.#renewed = Math.max(this.#renewed, session);
    if (this.link !== "renewing" || this.#renewed < this.sessions) return;
    this.#moveLink("renewed");
    this.#until = now + this.#link.patience;
    this.#outbox.endHold();
    this.#flush(now);
  }

  /** @param {number} now */
  #flush(now) {
    this.#outbox.flush(now);
    this.#setSlice(now);
  }

  /** @param {number} now */
  #setSlice(now) {
    if (this.#sliceAt === Infinity) this.#sliceAt = now + this.#outbox.pause(now);
  }

  // ---- link and session

  /** @param {number} now */
  connect(now) {
    if (this.link === null) {
      this.#move("connect");
      this.#lastLoss = "";
      this.#giveUp = now + this.#connection.patience;
      this.#dial(now);
    } else if (this.link === "paused" && this.#backoff.isOver) this.#dial(now);
  }

  /** @param {number} now */
  #dial(now) {
    this.#until = Infinity;
    this.#tried = now;
    this.#backoff.attempt();
    this.#moveLink("dial");
    this.#port.dial();
  }

  /** @param {number} now */
  dialled(now) {
    if (this.link !== "dialling") return this.#port.hangUp();
    this.#moveLink("dialled");
    this.#until = now + this.#link.patience;
    this.#ask();
  }

  #ask() {
    this.#port.ask(this.#token === null ? "open" : "re-open", this.#token, null);
  }

  /**
   * Process an answer of the node to a session control.
   *
   * @param {Answer} answer
   * @param {number} now
   */
  takeAnswer(answer, now) {
    const { method, code } = answer;
    if (code < 200) return;
    const isOpening = method === "open" || method === "re-open";
    if (isOpening && ASKING.includes(this.link ?? "")) this.#opened(answer, now);
    else if (method === "open" && this.#isTalking && code >= 300) this.#breakOff(reasonOf(answer), now);
    else if (method === "close" && this.link === "closing") this.#end("closed");
    else this.noteLife(now);
  }

  /**
   * @param {Answer} answer
   * @param {number} now
   */
  #opened(answer, now) {
    const { method, code, challenge } = answer;
    if (code < 300) return this.#live(answer, now);
    if (challenge && this.link === "opening") {
      this.#moveLink("challenged");
      this.#until = now + this.#link.patience;
      return this.#port.ask(method, this.#token, challenge);
    }
    const why = reasonOf(answer);
    const isFirst = this.state === "in-progress";
    const isDisplaced = method === "re-open" && code === CODES.CONFLICT;
    // The application has started its runtime again: that is a new login.
    if ((isDisplaced && isFirst) || (method === "re-open" && FORGOTTEN.includes(code))) {
      this.#token = null;
      if (this.link === "proving") this.#moveLink("asked-anew", why);
      this.#until = now + this.#link.patience;
      return this.#ask();
    }
    if (!isFirst && (isDisplaced || this.#isFinal(answer, now))) return this.#giveUpSession(why, code);
    const isLasting = (answer.isLasting || TURNED_AWAY.includes(code)) && !answer.isPassing;
    if (!isFirst || !isLasting) return this.#breakOff(why, now);
    this.#port.hangUp();
    this.#fail(why, code);
  }

  /**
   * Return whether a refusal is final; also one that many logins got for some time.
   *
   * @param {Answer} answer
   * @param {number} now
   */
  #isFinal({ code, isLasting = false, isPassing = false, login = "" }, now) {
    if (isPassing) return false;
    const refused = this.#refusedLogins;
    if (code === CODES.UNAUTHENTICATED && login && !refused.has(login)) refused.set(login, now);
    const isHopeless = refused.size >= constants.RECONNECT_TRIES && now - Math.min(...refused.values()) >= constants.LOGIN_PATIENCE;
    return isLasting || code === CODES.FORBIDDEN || isHopeless;
  }

  /**
   * End the session for good: refuse all messages with the reason, and do not reconnect.
   *
   * @param {string} why
   * @param {number} code
   */
  #giveUpSession(why, code) {
    this.#port.hangUp();
    this.#until = this.#giveUp = this.#renewAt = Infinity;
    this.#endCode = code;
    this.#lastLoss = why;
    this.#token = null;
    this.#moveLink("end", why);
    this.#move("ended", why);
    this.#outbox.refuseAll(why, code);
  }

  /**
   * @param {Answer} answer
   * @param {number} now
   */
  #live(answer, now) {
    const isFirst = this.state === "in-progress";
    if (answer.method === "open" || answer.isEmptied) this.sessions += 1;
    if (isFirst || this.#owner === null) this.#renewed = this.sessions;
    const isRenewed = this.#renewed === this.sessions;
    this.#moveLink(isRenewed ? "session-opened" : "session-emptied");
    this.#since = now;
    this.#until = now + this.#link.patience;
    this.#holdUntil = now + constants.RENEW_TIMEOUT;
    this.#giveUp = Infinity;
    this.#backoff.succeed();
    this.#refusedLogins.clear();
    this.#token = answer.token ?? this.#token;
    this.#outbox.keepTo(answer.rate ?? null);
    if (!isRenewed) this.#outbox.hold((message) => this.#isRenewal(message));
    this.#move(isFirst ? "established" : "reestablished");
    this.#sliceAt = Infinity;
    this.#flush(now);
  }

  /**
   * Store for how many seconds the node's signed statement is valid.
   *
   * @param {number} life
   * @param {number} now
   */
  noteStatement(life, now) {
    this.#renewAt = now + Math.max(life / 2, STATEMENT_RETRY);
  }

  /**
   * Store the time at which the node has last sent something.
   *
   * @param {number} now
   */
  noteLife(now) {
    if (this.link === "pinging") this.#moveLink("heard");
    if (this.link === "open" || this.link === "renewing") this.#until = now + this.#link.patience;
  }

  /**
   * @param {string} why
   * @param {number} now
   */
  #breakOff(why, now) {
    this.#port.hangUp();
    this.loseLink(why, now);
  }

  /**
   * @param {string} why
   * @param {number} now
   */
  loseLink(why, now) {
    if (this.link === "closing") return this.#end(why);
    if (this.link === null || this.link === "paused" || this.link === "ended") return;
    this.#moveLink("lost", why);
    this.#lastLoss = why;
    this.#renewAt = Infinity;
    if (this.state === "live") {
      this.#move("closed", why);
      this.#outbox.keep();
      this.#backoff.lost(now - this.#since);
    }
    this.#until = now + this.#backoff.pause(this.#jitter());
    if (this.state === "in-progress" && this.#until >= this.#giveUp) this.#fail(why);
    else if (this.#backoff.isOver) this.#outbox.refuseAll(why, CODES.UNAVAILABLE, constants.RECONNECT_BASE);
  }

  /**
   * @param {string} why
   * @param {number} [code]
   */
  #fail(why, code = CODES.UNAVAILABLE) {
    this.#until = this.#giveUp = this.#renewAt = Infinity;
    this.#moveLink("end", why);
    this.#move("establish-failed", why);
    // The runtime deploys another stub after that.
    this.#outbox.refuseAll(why, code, code === CODES.UNAVAILABLE ? constants.RETRY_COOL_DOWN : null);
  }

  // ---- time and the end

  /** @param {number} now */
  timeOver(now) {
    if (this.#isTalking && now >= this.#sliceAt) {
      this.#sliceAt = Infinity;
      this.#flush(now);
    } else if (this.#outbox.isHolding && now >= this.#holdUntil) this.#outbox.refuseHeld();
    else if (now >= this.#giveUp) {
      this.#port.hangUp();
      this.#fail(this.#lastLoss || "no session in time");
    } else if (now >= this.#renewAt) {
      this.#renewAt = now + STATEMENT_RETRY;
      if (this.#isTalking) this.#port.ask("renew", null, null);
    } else if (now >= this.#until) this.#due(now);
  }

  /** @param {number} now */
  #due(now) {
    switch (this.link) {
      case "paused":
        return this.#dial(now);
      case "open":
        this.#moveLink("ping");
        this.#until = now + this.#link.patience;
        return this.#port.ask("ping", null, null);
      case "pinging":
      case "renewing":
        if (now > this.#until + constants.LATE) {
          // This page was busy: answers of the node may not have been read yet.
          this.#until = now + Math.min(now - this.#until, constants.PONG_TIMEOUT);
          return;
        }
        return this.#breakOff(`${this.link === "pinging" ? "a ping" : "what the node has forgotten"} was not answered`, now);
      case "opening":
      case "proving":
        return this.#breakOff("no session in time", now);
      default:
        return this.#end("no answer to the close");
    }
  }

  /** @param {number} now */
  disconnect(now) {
    if (this.#isTalking) {
      this.#moveLink("close");
      this.#until = now + this.#link.patience;
      this.#port.ask("close", null, null);
    } else if (this.link !== "closing") this.#end("disconnect");
  }

  /** @param {string} why */
  #end(why) {
    this.#until = this.#giveUp = this.#renewAt = Infinity;
    this.#port.hangUp();
    if (this.link !== "ended") this.#moveLink("end", why);
    if (this.state === "live") {
      this.#move("closed", why);
      this.#outbox.keep();
    } else if (this.state === "in-progress") this.#move("establish-failed", why);
    else if (this.state === "created") this.#move("connect-impossible", why);
    this.#outbox.refuseAll("the stub is closed");
    this.#port.ended();
  }
}

/** @param {Answer} answer */
const reasonOf = (answer) => answer.why || `the node answered ${answer.code}`;

/**
 * Return the rate of messages that a node accepts from a session; null: missing or invalid.
 *
 * @param {import("./json.js").JsonObject} granted
 * @returns {Rate | null}
 */
export function rateOf({ rate, burst }) {
  if (typeof rate !== "number" || typeof burst !== "number" || rate <= 0 || burst < 1) return null;
  return { perSecond: Math.max(rate, constants.LEAST_PACE), burst };
}
