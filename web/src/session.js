/**
 * The session of a node stub, as a core without input or output: `fsm/session/stub_client.py`
 * explains it. Inputs are objects with `on`, effects objects with `do`.
 */

import { domainOf, isBackend, isBelow } from "./address.js";
import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { TokenBucket } from "./limits.js";
import { Entity } from "./machine.js";
import { isRequest } from "./message.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./machine.js").Step} Step */
/** @typedef {"open" | "re-open" | "close" | "ping" | "renew"} Method */
/** @typedef {{perSecond: number, burst: number}} Rate */

/**
 * The answer of the node to a session control. `isLasting`: another attempt does not help.
 * `isPassing`: the node has said when one may help. `login`: the token of the login that was shown.
 * @typedef {{on: "answered", method: Method, code: number, token?: string | null, why?: string,
 *   isEmptied?: boolean, isLasting?: boolean, isPassing?: boolean, login?: string,
 *   challenge?: string | null, rate?: Rate | null}} Answered
 */

/**
 * @typedef {{on: "send", message: Message} | {on: "connect"} | {on: "disconnect"} |
 *   {on: "dialled"} | {on: "lost", why: string} | Answered | {on: "stated", life: number} |
 *   {on: "renewed", session: number} | {on: "heard"} | {on: "written", count: number} | {on: "unwritable", message: Message} |
 *   {on: "time"}} Input
 */

/**
 * @typedef {Step | {do: "dial"} | {do: "hang-up"} |
 *   {do: "ask", method: Method, token: string | null, challenge: string | null} |
 *   {do: "write", message: Message} | {do: "queued", message: Message} |
 *   {do: "released", message: Message} |
 *   {do: "refuse", message: Message, code: number, why: string, retryAfter: number | null} |
 *   {do: "drop", message: Message, reason: string} | {do: "ended"}} Effect
 */

/**
 * Return what becomes of a message that cannot be sent: only requests are answered.
 *
 * @param {Message} message
 * @param {number} code
 * @param {string} why
 * @param {number | null} [retryAfter]
 * @returns {Effect}
 */
export const refused = (message, code, why, retryAfter = null) =>
  isRequest(message)
    ? { do: "refuse", message, code, why, retryAfter }
    : { do: "drop", message, reason: DROPS.SESSION_GONE };

/**
 * @param {Message} message
 * @param {number} limit
 * @param {number} [delay]
 * @returns {Effect}
 */
function overflow(message, limit, delay = constants.RETRY_AFTER) {
  if (!isRequest(message)) return { do: "drop", message, reason: DROPS.OVERFLOW };
  const why = `${limit} messages wait for the message node already`;
  return { do: "refuse", message, code: CODES.UNAVAILABLE, why, retryAfter: delay };
}

/**
 * @param {Message} message
 * @returns {Effect}
 */
function notRenewed(message) {
  const why = "the message node has been started again, and has not everything back yet";
  return refused(message, CODES.UNAVAILABLE, why, constants.RETRY_AFTER);
}

/** Two queues in order of arrival, both bounded: for the session, and for the link. */
class Outbox {
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

  /**
   * @param {Message} message
   * @returns {Effect[]}
   */
  holdBack(message) {
    if (!this.hasRoom) return [overflow(message, constants.STUB_QUEUE)];
    this.#held.push(message);
    return [{ do: "queued", message }];
  }

  /** Let what was held back wait for its turn. */
  endHold() {
    this.#waiting.push(...this.#held.splice(0));
  }

  /** @returns {Effect[]} */
  refuseHeld() {
    return this.#held
      .splice(0)
      .flatMap((message) => [{ do: "released", message }, notRenewed(message)]);
  }

  /**
   * @param {Message} message
   * @returns {Effect[]}
   */
  wait(message) {
    this.#waiting.push(message);
    return [{ do: "queued", message }];
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
   * @returns {Effect[]}
   */
  write(message, now) {
    if (this.#unwritten.length >= constants.OUTBOX_MESSAGES) return [overflow(message, constants.OUTBOX_MESSAGES)];
    if (!this.#waiting.length && this.#maySend(now)) {
      this.#unwritten.push(message);
      return [{ do: "write", message }];
    }
    if (this.hasRoom) return this.wait(message);
    const delay = this.rate ? this.#waiting.length / this.rate.perSecond : constants.RETRY_AFTER;
    return [overflow(message, constants.STUB_QUEUE, delay)];
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

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  flush(now) {
    /** @type {Effect[]} */
    const effects = [];
    while (this.#waiting.length && this.#maySend(now)) {
      const message = /** @type {Message} */ (this.#waiting.shift());
      this.#unwritten.push(message);
      effects.push({ do: "released", message }, { do: "write", message });
    }
    return effects;
  }

  /**
   * Take back what the link did not send before it broke; it waits first.
   *
   * @returns {Effect[]}
   */
  keep() {
    const kept = this.#unwritten.splice(0);
    this.#waiting.unshift(...kept);
    this.endHold();
    return kept.map((message) => ({ do: "queued", message }));
  }

  /**
   * @param {string} why
   * @param {number} [code]
   * @param {number | null} [retryAfter]
   * @returns {Effect[]}
   */
  refuse(why, code = CODES.UNAVAILABLE, retryAfter = null) {
    this.endHold();
    return this.#waiting
      .splice(0)
      .flatMap((message) => [
        { do: "released", message },
        refused(message, code, why, retryAfter),
      ]);
  }
}

/** Counts attempts at one thing: the first is at once, then pauses double. */
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
/** The requests by which a runtime claims addresses, sets paths, and registers. */
const RENEWALS = ["subscribe", "create", "update"];
const ASKING = ["opening", "proving"];
/** Answers to a re-open that say: there is no such session any more. */
const FORGOTTEN = /** @type {number[]} */ ([CODES.GONE, CODES.UNAUTHENTICATED, CODES.NOT_FOUND]);
const TURNED_AWAY = /** @type {number[]} */ ([CODES.UNAUTHENTICATED, CODES.FORBIDDEN]);
/** Seconds after which a statement that did not come is asked for again. */
const STATEMENT_RETRY = 60;

/** One node stub: an entity of `stub_connection`, and one of `node_link`. */
export class StubClient {
  #connection;
  #link;
  #outbox = new Outbox();
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
  /** Number of the last session that has all that the runtime had before. */
  #renewed = 0;
  /** @type {string | null} */
  #owner;
  /** When each was refused first. @type {Map<string, number>} */
  #refusedLogins = new Map();
  /** @type {number | null} */
  #endCode = null;

  /**
   * @param {string} url address of the stub
   * @param {() => number} jitter between 0 and 1
   * @param {string | null} [token] of a session that an earlier stub had: it is re-opened
   * @param {string | null} [owner] the runtime, if it has addresses at the node
   */
  constructor(url, jitter, token = null, owner = null) {
    this.#owner = owner;
    this.#connection = new Entity("stub_connection", url);
    this.#link = new Entity("node_link", url);
    this.#jitter = jitter;
    this.#token = token;
    /** How many sessions it has opened anew, or that the node has emptied. */
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

  /**
   * Take the step of the constructor.
   *
   * @returns {Effect[]}
   */
  begin() {
    return [this.#connection.step("constructed")];
  }

  /** When the input `time` is due. */
  get deadline() {
    const hold = this.#outbox.isHolding ? this.#holdUntil : Infinity;
    return Math.min(this.#until, this.#giveUp, this.#renewAt, this.#sliceAt, hold);
  }

  /**
   * Take an input; return the effects, in order.
   *
   * @param {Input} input
   * @param {number} now seconds on the host's clock
   * @returns {Effect[]}
   */
  feed(input, now) {
    const effects = this.#fed(input, now);
    if (!this.#isTalking) this.#sliceAt = Infinity;
    else if (this.#sliceAt === Infinity) this.#sliceAt = now + this.#outbox.pause(now);
    return effects;
  }

  /**
   * @param {Input} input
   * @param {number} now
   * @returns {Effect[]}
   */
  #fed(input, now) {
    switch (input.on) {
      case "send":
        return this.#send(input.message, now);
      case "heard":
        return this.#heard(now);
      case "written":
        this.#outbox.written(input.count);
        return [];
      case "unwritable":
        this.#outbox.unwritable(input.message);
        return [];
      case "connect":
        return this.#connect(now);
      case "disconnect":
        return this.#disconnect(now);
      case "renewed":
        return this.#endRenewal(input.session, now);
      case "dialled":
        return this.#dialled(now);
      case "lost":
        return this.#lost(input.why, now);
      case "answered":
        return this.#answered(input, now);
      case "stated":
        this.#renewAt = now + Math.max(input.life / 2, STATEMENT_RETRY);
        return [];
      case "time":
        return this.#time(now);
    }
  }

  // ---- messages

  /**
   * @param {Message} message
   * @param {number} now
   * @returns {Effect[]}
   */
  #send(message, now) {
    if (this.link === "renewing" && !this.#isRenewal(message)) {
      return now >= this.#holdUntil ? [notRenewed(message)] : this.#outbox.holdBack(message);
    }
    if (this.#isTalking) return this.#outbox.write(message, now);
    if (this.#endCode !== null) return [refused(message, this.#endCode, this.#lastLoss)];
    if (this.link === "ended" || this.link === "closing" || this.state === "failed") {
      return [refused(message, CODES.UNAVAILABLE, "the stub is closed", constants.RETRY_COOL_DOWN)];
    }
    if (this.link === "paused" && this.#backoff.isOver && now < this.#tried + constants.RECONNECT_BASE) {
      const pause = this.#tried + constants.RECONNECT_BASE - now;
      return [refused(message, CODES.UNAVAILABLE, "the message node cannot be reached", pause)];
    }
    if (!this.#outbox.hasRoom) return [overflow(message, constants.STUB_QUEUE)];
    return [...this.#outbox.wait(message), ...this.#connect(now)];
  }

  /**
   * Return whether a message gives the runtime back what it had at the node.
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
   * Let go what waited for the runtime to have everything at its session again.
   *
   * @param {number} session
   * @param {number} now
   * @returns {Effect[]}
   */
  #endRenewal(session, now) {
    this.#renewed = Math.max(this.#renewed, session);
    if (this.link !== "renewing" || this.#renewed < this.sessions) return [];
    const step = this.#link.step("renewed");
    this.#until = now + this.#link.patience;
    this.#outbox.endHold();
    return [step, ...this.#outbox.flush(now)];
  }

  // ---- link and session

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #connect(now) {
    if (this.link === null) {
      const step = this.#connection.step("connect");
      this.#lastLoss = "";
      this.#giveUp = now + this.#connection.patience;
      return [step, ...this.#dial(now)];
    }
    return this.link === "paused" && this.#backoff.isOver ? this.#dial(now) : [];
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #dial(now) {
    this.#until = Infinity;
    this.#tried = now;
    this.#backoff.attempt();
    return [this.#link.step("dial"), { do: "dial" }];
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #dialled(now) {
    if (this.link !== "dialling") return [{ do: "hang-up" }];
    const step = this.#link.step("dialled");
    this.#until = now + this.#link.patience;
    return [step, this.#ask()];
  }

  /** @returns {Effect} */
  #ask() {
    const method = this.#token === null ? "open" : "re-open";
    return { do: "ask", method, token: this.#token, challenge: null };
  }

  /**
   * @param {Answered} answer
   * @param {number} now
   * @returns {Effect[]}
   */
  #answered(answer, now) {
    const { method, code } = answer;
    if (code < 200) return [];
    const isOpening = method === "open" || method === "re-open";
    if (isOpening && ASKING.includes(this.link ?? "")) return this.#opened(answer, now);
    if (method === "open" && this.#isTalking && code >= 300) {
      return [{ do: "hang-up" }, ...this.#lost(reasonOf(answer), now)];
    }
    if (method === "close" && this.link === "closing") return this.#end("closed");
    return this.#heard(now);
  }

  /**
   * @param {Answered} answer
   * @param {number} now
   * @returns {Effect[]}
   */
  #opened(answer, now) {
    const { method, code, challenge } = answer;
    if (code < 300) return this.#live(answer, now);
    if (challenge && this.link === "opening") {
      const step = this.#link.step("challenged");
      this.#until = now + this.#link.patience;
      return [step, { do: "ask", method, token: this.#token, challenge }];
    }
    const why = reasonOf(answer);
    const isFirst = this.state === "in-progress";
    const isDisplaced = method === "re-open" && code === CODES.CONFLICT;
    // The application has started its runtime again: that is a new login.
    if ((isDisplaced && isFirst) || (method === "re-open" && FORGOTTEN.includes(code))) {
      this.#token = null;
      const step = this.link === "proving" ? [this.#link.step("asked-anew", why)] : [];
      this.#until = now + this.#link.patience;
      return [...step, this.#ask()];
    }
    if (!isFirst && (isDisplaced || this.#isFinal(answer, now))) {
      return [{ do: "hang-up" }, ...this.#giveUpSession(why, code)];
    }
    const isLasting = (answer.isLasting || TURNED_AWAY.includes(code)) && !answer.isPassing;
    if (this.state === "in-progress" && isLasting) return [{ do: "hang-up" }, ...this.#fail(why, code)];
    return [{ do: "hang-up" }, ...this.#lost(why, now)];
  }

  /**
   * Return whether a refusal is lasting; so is that of many logins for some time.
   *
   * @param {Answered} answer
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
   * End for good: all messages are refused with the reason, and nothing is tried again.
   *
   * @param {string} why
   * @param {number} code
   * @returns {Effect[]}
   */
  #giveUpSession(why, code) {
    this.#until = this.#giveUp = this.#renewAt = Infinity;
    this.#endCode = code;
    this.#lastLoss = why;
    this.#token = null;
    const over = this.#link.step("end", why);
    return [over, this.#connection.step("ended", why), ...this.#outbox.refuse(why, code)];
  }

  /**
   * @param {Answered} answer
   * @param {number} now
   * @returns {Effect[]}
   */
  #live(answer, now) {
    const isFirst = this.state === "in-progress";
    if (answer.method === "open" || answer.isEmptied) this.sessions += 1;
    if (isFirst || this.#owner === null) this.#renewed = this.sessions;
    const isRenewed = this.#renewed === this.sessions;
    const opened = this.#link.step(isRenewed ? "session-opened" : "session-emptied");
    this.#since = now;
    this.#until = now + this.#link.patience;
    this.#holdUntil = now + constants.RENEW_TIMEOUT;
    this.#giveUp = Infinity;
    this.#backoff.succeed();
    this.#refusedLogins.clear();
    this.#token = answer.token ?? this.#token;
    const trigger = isFirst ? "established" : "reestablished";
    this.#outbox.keepTo(answer.rate ?? null);
    if (!isRenewed) this.#outbox.hold((message) => this.#isRenewal(message));
    return [opened, this.#connection.step(trigger), ...this.#outbox.flush(now)];
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #heard(now) {
    /** @type {Effect[]} */
    const effects = this.link === "pinging" ? [this.#link.step("heard")] : [];
    if (this.link === "open" || this.link === "renewing") this.#until = now + this.#link.patience;
    return effects;
  }

  /**
   * @param {string} why
   * @param {number} now
   * @returns {Effect[]}
   */
  #lost(why, now) {
    if (this.link === "closing") return this.#end(why);
    return this.link === null || this.link === "paused" || this.link === "ended"
      ? []
      : this.#pause(why, now);
  }

  /**
   * @param {string} why
   * @param {number} now
   * @returns {Effect[]}
   */
  #pause(why, now) {
    /** @type {Effect[]} */
    const effects = [this.#link.step("lost", why)];
    this.#lastLoss = why;
    this.#renewAt = Infinity;
    if (this.state === "live") {
      effects.push(this.#connection.step("closed", why), ...this.#outbox.keep());
      this.#backoff.lost(now - this.#since);
    }
    this.#until = now + this.#backoff.pause(this.#jitter());
    if (this.state === "in-progress" && this.#until >= this.#giveUp) {
      return [...effects, ...this.#fail(why)];
    }
    if (this.#backoff.isOver) {
      effects.push(...this.#outbox.refuse(why, CODES.UNAVAILABLE, constants.RECONNECT_BASE));
    }
    return effects;
  }

  /**
   * @param {string} why
   * @param {number} [code]
   * @returns {Effect[]}
   */
  #fail(why, code = CODES.UNAVAILABLE) {
    this.#until = this.#giveUp = this.#renewAt = Infinity;
    const over = this.#link.step("end", why);
    const step = this.#connection.step("establish-failed", why);
    // The runtime deploys another stub after that.
    const later = code === CODES.UNAVAILABLE ? constants.RETRY_COOL_DOWN : null;
    return [over, step, ...this.#outbox.refuse(why, code, later)];
  }

  // ---- time and the end

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #time(now) {
    if (now >= this.#sliceAt) {
      this.#sliceAt = Infinity;
      return this.#outbox.flush(now);
    }
    if (this.#outbox.isHolding && now >= this.#holdUntil) return this.#outbox.refuseHeld();
    if (now >= this.#giveUp) {
      return [{ do: "hang-up" }, ...this.#fail(this.#lastLoss || "no session in time")];
    }
    if (now >= this.#renewAt) {
      this.#renewAt = now + STATEMENT_RETRY;
      return this.#isTalking ? [{ do: "ask", method: "renew", token: null, challenge: null }] : [];
    }
    return now >= this.#until ? this.#due(now) : [];
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #due(now) {
    switch (this.link) {
      case "paused":
        return this.#dial(now);
      case "open": {
        const step = this.#link.step("ping");
        this.#until = now + this.#link.patience;
        return [step, { do: "ask", method: "ping", token: null, challenge: null }];
      }
      case "pinging":
      case "renewing":
        if (now > this.#until + constants.LATE) {
          // Late itself: what the node has answered may not be read yet.
          this.#until = now + Math.min(now - this.#until, constants.PONG_TIMEOUT);
          return [];
        }
        return [{ do: "hang-up" }, ...this.#lost(
          `${this.link === "pinging" ? "a ping" : "what the node has forgotten"} was not answered`,
          now,
        )];
      case "opening":
      case "proving":
        return [{ do: "hang-up" }, ...this.#lost("no session in time", now)];
      default:
        return this.#end("no answer to the close");
    }
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #disconnect(now) {
    if (this.#isTalking) {
      const step = this.#link.step("close");
      this.#until = now + this.#link.patience;
      return [step, { do: "ask", method: "close", token: null, challenge: null }];
    }
    return this.link === "closing" ? [] : this.#end("disconnect");
  }

  /**
   * @param {string} why
   * @returns {Effect[]}
   */
  #end(why) {
    this.#until = this.#giveUp = this.#renewAt = Infinity;
    /** @type {Effect[]} */
    const effects = [{ do: "hang-up" }];
    if (this.link !== "ended") effects.push(this.#link.step("end", why));
    if (this.state === "live") {
      effects.push(this.#connection.step("closed", why), ...this.#outbox.keep());
    } else if (this.state === "in-progress") {
      effects.push(this.#connection.step("establish-failed", why));
    } else if (this.state === "created") {
      effects.push(this.#connection.step("connect-impossible", why));
    }
    return [...effects, ...this.#outbox.refuse("the stub is closed"), { do: "ended" }];
  }
}

/** @param {Answered} answer */
const reasonOf = (answer) => answer.why || `the node answered ${answer.code}`;

/**
 * Return the rate that a node accepts from a session; null: it names none that is of use.
 *
 * @param {import("./json.js").JsonObject} granted
 * @returns {Rate | null}
 */
export function rateOf({ rate, burst }) {
  if (typeof rate !== "number" || typeof burst !== "number" || rate <= 0 || burst < 1) return null;
  return { perSecond: Math.max(rate, constants.LEAST_PACE), burst };
}
