/**
 * One end of a direct link, as a core without input or output: `fsm/p2p/link_end.py`
 * explains it. Its only kind of link is a data channel.
 */

import { beginning, isPlea, negotiationOf, plea } from "./negotiation.js";
import { CODES, MAX_ICE_CANDIDATES, SESSION_IDLE } from "../constants.js";
import { Entity } from "../machine.js";

/** @typedef {import("../machine.js").Step} Step */
/** @typedef {"requester" | "handler"} Role */
/** @typedef {{own: string, remote: string, name: string, peer: string}} Terms */
/** @typedef {{candidate: string, sdpMid: string | null, sdpMLineIndex: number | null}} Ice */

/**
 * Whether the peer's object is believed: null, not signed yet; a text, why not.
 * @typedef {null | string | {identity: import("../message.js").SenderIdentity, fingerprint: string,
 *   until: number}} Standing
 */

/**
 * @typedef {{on: "started"} | {on: "row", hasOwnRequest: boolean} | {on: "object-created"} |
 *   {on: "object-refused", why: string} | {on: "invitation-answered", code: number, why: string} |
 *   {on: "described", sdp: string, negotiation: number} | {on: "ice-found", ice: Ice, negotiation: number} |
 *   {on: "peer-invited", url: string, source: string} |
 *   {on: "peer-seen", status: string, sdp: string | null, ice: Ice[], standing: Standing} |
 *   {on: "observe-refused", why: string} | {on: "peer-deleted"} |
 *   {on: "opened", link: string, negotiation: number} |
 *   {on: "lost", link: string, isOrderly: boolean, why: string} |
 *   {on: "dial-failed", negotiation: number} | {on: "connect"} | {on: "disconnect", why: string} |
 *   {on: "yield", negotiation: number} | {on: "resume", negotiation: number} | {on: "time"}} Input
 */

/**
 * @typedef {Step | {do: "announce", state: string, why: string} | {do: "ask-row"} |
 *   {do: "create-object"} | {do: "invite"} |
 *   {do: "answer-invitation", url: string, code: number, why: string} |
 *   {do: "observe", url: string} | {do: "pin", peer: Exclude<Standing, null | string>} |
 *   {do: "listen", offer: string | null} | {do: "offer", sdp: string} | {do: "trickle", ice: Ice} |
 *   {do: "hear-ice", ice: Ice} | {do: "plead", status: string} |
 *   {do: "renew", negotiation: number, status: string} | {do: "dial", sdp: string} |
 *   {do: "use-link", link: string} | {do: "release-link", link: string} |
 *   {do: "close-link", link: string} | {do: "answered", code: number, why: string} |
 *   {do: "withdraw"} | {do: "ended"}} Effect
 */

/** @type {Record<string, string>} */
const GIVE_UP = {
  created: "refused",
  "in-progress": "establish-failed",
  yielding: "establish-failed",
  live: "closed",
};

/**
 * @param {number} code
 * @param {string} [why]
 * @returns {Effect}
 */
const answered = (code, why = "") => ({ do: "answered", code, why });

/** One end of one link. */
export class LinkEnd {
  #terms;
  #role;
  #entity;
  #dialling;
  /** The controller of a handler's end. @type {Entity | null} */
  #life = null;
  #lifeUntil = Infinity;
  /** @type {Exclude<Standing, null | string> | null} */
  #peer = null;
  /** @type {string | null} */
  #link = null;
  #until = Infinity;
  #pleas = 0;
  #isInvited = false;
  #answered = 0;
  #peerPlea = "";
  /** The peer's answer, to be dialled; its offer, to be answered. @type {string | null} */
  #sdp = null;
  #isDialled = false;
  /** @type {Set<string>} */
  #found = new Set();
  /** @type {Set<string>} */
  #heard = new Set();
  negotiation = 1;

  /**
   * @param {Terms} terms
   * @param {Role} role
   * @param {string} [offer] the object with the offer that a handler answers
   */
  constructor(terms, role, offer = "") {
    this.#terms = terms;
    this.#role = role;
    this.offer = offer;
    const key = `${terms.own}|${terms.remote}|${role}|${terms.name}`;
    this.#entity = new Entity("p2p_connection", key);
    this.#dialling = new Entity("link_dialling", key);
    if (role === "handler") this.#life = new Entity("handler_controller", terms.name);
  }

  get state() {
    return this.#entity.state;
  }

  get hasEnded() {
    return this.#dialling.state === "ended";
  }

  get #isSettingUp() {
    return !this.hasEnded && ["created", "in-progress", "yielding"].includes(this.state ?? "");
  }

  /** When it is to be fed `time`. */
  get deadline() {
    return Math.min(this.#until, this.#lifeUntil);
  }

  /**
   * @param {Input} input
   * @param {number} now
   * @returns {Effect[]}
   */
  feed(input, now) {
    if (this.hasEnded) return afterTheEnd(input);
    return this.#feed(input, now);
  }

  /**
   * @param {Input} input
   * @param {number} now
   * @returns {Effect[]}
   */
  #feed(input, now) {
    const isHandler = this.#role === "handler";
    switch (input.on) {
      case "started": {
        const begun = this.#move("started");
        this.#until = now + this.#entity.patience;
        begun.push(this.#dialling.step(isHandler ? "stop" : "round"));
        if (isHandler) return [...begun, this.#moveLife("invited", now), { do: "ask-row" }];
        return [...begun, { do: "create-object" }];
      }
      case "row":
        return this.#decide(input.hasOwnRequest, now);
      case "object-created": {
        const moved = this.#move("object-returned");
        this.#until = Math.min(this.#until, now + this.#entity.patience);
        return [...moved, { do: "listen", offer: isHandler ? this.#sdp : null }, { do: "invite" }];
      }
      case "object-refused":
        return this.#giveUp(input.why);
      case "invitation-answered":
        return input.code >= 300 ? this.#refused(input.why || `refused ${input.code}`) : [];
      case "described":
        return input.negotiation === this.negotiation ? [{ do: "offer", sdp: input.sdp }] : [];
      case "ice-found": {
        const { ice } = input;
        if (input.negotiation !== this.negotiation || !isNew(this.#found, ice)) return [];
        return [{ do: "trickle", ice }];
      }
      case "peer-invited":
        return this.#invited(input.url, input.source);
      case "peer-seen":
        return isHandler ? this.#offerSeen(input, now) : this.#answerSeen(input);
      case "observe-refused":
        return this.#refused(input.why);
      case "peer-deleted":
        return this.#giveUp("the peer deleted its object");
      case "opened":
        return this.#opened(input, now);
      case "lost":
        return this.#lost(input, now);
      case "dial-failed":
        if (this.#dialling.state !== "dialling" || input.negotiation !== this.negotiation) return [];
        return [this.#dialling.step("dial-failed"), ...this.#dial()];
      case "connect":
        if (isHandler) return [answered(CODES.FORBIDDEN, "only the requester's end reconnects")];
        return [answered(CODES.ACCEPTED, "reconnecting"), ...this.#connect(now)];
      case "disconnect": {
        const why = this.state === "yielding" ? this.#loses : input.why;
        return [...this.#refuse(why), ...this.#giveUp(why), answered(CODES.OK)];
      }
      case "yield":
        return isHandler ? [answered(CODES.FORBIDDEN)] : this.#yields(input.negotiation);
      case "resume":
        return isHandler ? [answered(CODES.FORBIDDEN)] : this.#resumes(input.negotiation);
      case "time":
        return this.#timeOver(now);
    }
  }

  /**
   * @param {string} trigger
   * @param {string} [why]
   * @returns {Effect[]}
   */
  #move(trigger, why = "") {
    const step = this.#entity.step(trigger, why);
    return [step, { do: "announce", state: step.new, why }];
  }

  /**
   * @param {string} trigger
   * @param {number} now
   * @param {string[]} [given]
   * @returns {Step}
   */
  #moveLife(trigger, now, given = []) {
    const life = /** @type {Entity} */ (this.#life);
    const step = life.step(trigger, "", given);
    const until = now + life.patience;
    // The time for a set-up counts from its beginning.
    this.#lifeUntil = until === Infinity ? until : Math.min(until, this.#lifeUntil);
    return step;
  }

  get #loses() {
    return `${CODES.CONFLICT}: the link requested by ${this.#terms.remote} wins`;
  }

  // ---- set-up

  /**
   * @param {boolean} hasOwnRequest
   * @param {number} now
   * @returns {Effect[]}
   */
  #decide(hasOwnRequest, now) {
    if (this.#isInvited) return [];
    const given = [
      ...(hasOwnRequest ? ["own request"] : []),
      ...(this.#terms.own < this.#terms.remote ? ["own runtime smaller"] : []),
    ];
    const step = this.#moveLife("row-reported", now, given);
    if (step.new === "closed") {
      const why = `simultaneous open: the link requested by ${this.#terms.own} wins`;
      return [step, ...this.#refuse(why), ...this.#giveUp(why)];
    }
    this.#isInvited = true;
    const url = this.offer;
    return [step, { do: "answer-invitation", url, code: CODES.OK, why: "" }, { do: "observe", url }];
  }

  /**
   * Answer the invitation of a handler's end, if that was not done yet.
   *
   * @param {string} why
   * @returns {Effect[]}
   */
  #refuse(why) {
    if (!this.#life || this.#isInvited) return [];
    this.#isInvited = true;
    return [{ do: "answer-invitation", url: this.offer, code: CODES.CONFLICT, why }];
  }

  /**
   * @param {string} url
   * @param {string} source
   * @returns {Effect[]}
   */
  #invited(url, source) {
    /**
     * @param {number} code
     * @param {string} [why]
     * @returns {Effect}
     */
    const answer = (code, why = "") => ({ do: "answer-invitation", url, code, why });
    if (this.#life) return [answer(CODES.CONFLICT, "the invitation came before")];
    if (source !== this.#terms.peer || !this.#isSettingUp) {
      return [answer(CODES.FORBIDDEN, "this object is not expected here")];
    }
    if (this.#isInvited) return [answer(CODES.CONFLICT, "there is an answer object already")];
    this.#isInvited = true;
    return [answer(CODES.OK), { do: "observe", url }];
  }

  /**
   * @param {Standing} standing
   * @returns {Effect[]}
   */
  #believe(standing) {
    if (standing === null) return [];
    if (typeof standing === "string") return this.#refused(standing);
    if (this.#peer && this.#peer.fingerprint !== standing.fingerprint) {
      return this.#refused("the peer offers another certificate than before");
    }
    if (this.#peer && this.#peer.until === standing.until) return [];
    this.#peer = standing;
    if (this.state === "live") this.#until = standing.until;
    return [{ do: "pin", peer: standing }];
  }

  /**
   * @param {Extract<Input, {on: "peer-seen"}>} seen
   * @returns {Effect[]}
   */
  #answerSeen({ status, sdp, ice, standing }) {
    if (negotiationOf(status) !== this.negotiation) return [];
    const effects = this.#believe(standing);
    if (standing === null || typeof standing === "string" || this.hasEnded) return effects;
    effects.push(...this.#hearIce(ice));
    const pleads = isPlea(status) && status !== this.#peerPlea;
    this.#peerPlea = status;
    if (pleads && this.#isSettingUp) {
      return [...effects, ...this.#giveUp("no candidate of either end opens")];
    }
    if (sdp === null) return [...effects, ...this.#refused("the peer takes no data channel")];
    this.#sdp ??= sdp;
    return [...effects, ...this.#dial()];
  }

  /**
   * Dial the peer's answer once; then plead.
   *
   * @returns {Effect[]}
   */
  #dial() {
    if (this.#dialling.state !== "ready" || this.#sdp === null) return [];
    if (this.#isDialled) return this.#plead();
    this.#isDialled = true;
    return [this.#dialling.step("dial"), { do: "dial", sdp: this.#sdp }];
  }

  /** @returns {Effect[]} */
  #plead() {
    this.#pleas += 1;
    const step = this.#dialling.step(this.#life ? "stop" : "plead");
    return [step, { do: "plead", status: plea(this.negotiation, this.#pleas) }];
  }

  /**
   * @param {Ice[]} candidates
   * @returns {Effect[]}
   */
  #hearIce(candidates) {
    return candidates.filter((ice) => isNew(this.#heard, ice)).map((ice) => ({ do: "hear-ice", ice }));
  }

  /**
   * An offer of another negotiation than this one or the next is void.
   *
   * @param {Extract<Input, {on: "peer-seen"}>} seen
   * @param {number} now
   * @returns {Effect[]}
   */
  #offerSeen({ status, sdp, ice, standing }, now) {
    const number = negotiationOf(status);
    if (number !== this.negotiation && number !== this.negotiation + 1) return [];
    /** @type {Effect[]} */
    const effects = [];
    const isBelieved = standing !== null && typeof standing !== "string";
    if (number !== this.negotiation) {
      if (this.state === "created") return this.#giveUp("the offer was void before it was answered");
      const isOfPeer = isBelieved && this.#peer?.fingerprint === standing.fingerprint;
      if (this.state === "live" && !isOfPeer) return [];
      effects.push(...this.#renew(number, "the requester offers anew", now));
    }
    effects.push(...this.#believe(standing));
    if (!isBelieved || this.hasEnded) return effects;
    if (sdp === null) return [...effects, ...this.#refused("the peer offers no data channel")];
    if (this.#answered !== this.negotiation) {
      this.#answered = this.negotiation;
      this.#sdp = sdp;
      if (this.#life?.state === "observing") {
        effects.push(this.#moveLife("answer", now), { do: "create-object" });
      } else effects.push({ do: "listen", offer: sdp });
    }
    effects.push(...this.#hearIce(ice));
    const pleads = isPlea(status) && status !== this.#peerPlea;
    this.#peerPlea = status;
    if (!pleads || this.state === "live") return effects;
    return [...effects, this.#dialling.step("round"), ...this.#plead()];
  }

  // ---- links

  /**
   * @param {Extract<Input, {on: "opened"}>} opened
   * @param {number} now
   * @returns {Effect[]}
   */
  #opened({ link, negotiation }, now) {
    if (negotiation !== this.negotiation || !this.#peer || this.state !== "in-progress") {
      return [{ do: "close-link", link }];
    }
    this.#link = link;
    this.#until = this.#peer.until;
    /** @type {Effect[]} */
    const effects = [{ do: "use-link", link }, ...this.#move("established")];
    if (this.#dialling.state !== "idle") effects.push(this.#dialling.step("stop"));
    if (this.#life?.state === "answering") effects.push(this.#moveLife("link-open", now));
    return effects;
  }

  /**
   * @param {{link: string, isOrderly: boolean, why: string}} lost
   * @param {number} now
   * @returns {Effect[]}
   */
  #lost({ link, isOrderly, why }, now) {
    if (link !== this.#link) return [];
    this.#link = null;
    this.#until = now + SESSION_IDLE;
    /** @type {Effect[]} */
    const effects = [...this.#move("closed", why), { do: "release-link", link }];
    return isOrderly ? [...effects, ...this.#end()] : effects;
  }

  /**
   * A link that only has a data channel comes back by a new negotiation.
   *
   * @param {number} now
   */
  #connect(now) {
    if (this.state !== "disconnected") return [];
    return this.#renew(this.negotiation + 1, "a new offer is needed", now);
  }

  /**
   * @param {number} negotiation
   * @param {string} why
   * @param {number} now
   * @returns {Effect[]}
   */
  #renew(negotiation, why, now) {
    /** @type {Effect[]} */
    const effects = [];
    if (this.#link !== null) effects.push(...this.#lost({ link: this.#link, isOrderly: false, why }, now));
    if (this.state === "disconnected") {
      effects.push(...this.#move("renegotiated", why));
      this.#until = now + this.#entity.patience;
    }
    this.negotiation = negotiation;
    this.#sdp = null;
    this.#isDialled = false;
    this.#found.clear();
    this.#heard.clear();
    if (this.#dialling.state !== "idle") effects.push(this.#dialling.step("stop"));
    effects.push({ do: "renew", negotiation, status: beginning(negotiation) });
    // A handler answers what the requester will offer.
    return this.#life ? effects : [...effects, this.#dialling.step("round"), { do: "listen", offer: null }];
  }

  // ---- simultaneous open

  /**
   * @param {number} negotiation
   * @returns {Effect[]}
   */
  #yields(negotiation) {
    if (this.state === "created") return [...this.#giveUp(this.#loses), answered(CODES.OK)];
    if (this.state === "yielding") return [answered(CODES.OK)];
    if (this.state !== "in-progress" || negotiation !== this.negotiation) {
      return [answered(CODES.CONFLICT, "the link is not being set up")];
    }
    const yielded = this.#move("yielded", this.#loses);
    if (this.#dialling.state !== "idle") yielded.push(this.#dialling.step("stop"));
    return [...yielded, answered(CODES.OK)];
  }

  /**
   * @param {number} negotiation
   * @returns {Effect[]}
   */
  #resumes(negotiation) {
    if (this.state !== "yielding" || negotiation !== this.negotiation) {
      return [answered(CODES.CONFLICT, "the link does not yield")];
    }
    const resumed = this.#move("resumed", "the peer's link has failed");
    return [...resumed, answered(CODES.OK), this.#dialling.step("round"), ...this.#dial()];
  }

  // ---- the end

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #timeOver(now) {
    if (now < this.deadline) return [];
    const late = this.#peer ? "timeout" : "timeout: the peer has signed nothing";
    if (this.state === "live") return this.#giveUp("nobody vouches for the peer any more");
    if (!this.#isSettingUp) return this.#giveUp("the link did not come back");
    return [...this.#refuse("timeout"), ...this.#giveUp(late)];
  }

  /**
   * Give up a set-up that was refused; a link stands without it.
   *
   * @param {string} why
   */
  #refused(why) {
    return this.#isSettingUp ? this.#giveUp(why) : [];
  }

  /**
   * @param {string} why
   * @returns {Effect[]}
   */
  #giveUp(why) {
    const trigger = GIVE_UP[this.state ?? ""];
    /** @type {Effect[]} */
    const effects = trigger ? this.#move(trigger, why) : [];
    if (this.#link !== null) effects.push({ do: "close-link", link: this.#link });
    this.#link = null;
    return [...effects, ...this.#end()];
  }

  /** @returns {Effect[]} */
  #end() {
    this.#until = this.#lifeUntil = Infinity;
    const effects = [this.#dialling.step("end")];
    if (this.#life && !this.#life.mayEnd) effects.push(this.#life.step("over"));
    return [...effects, { do: "withdraw" }, { do: "ended" }];
  }
}

/**
 * @param {Set<string>} known
 * @param {Ice} ice
 */
function isNew(known, { candidate }) {
  const isUsable = !known.has(candidate) && known.size < MAX_ICE_CANDIDATES;
  if (isUsable) known.add(candidate);
  return isUsable;
}

/**
 * Clean up what arrives at an end that is done.
 *
 * @param {Input} input
 * @returns {Effect[]}
 */
export function afterTheEnd(input) {
  const why = "the link has ended";
  switch (input.on) {
    case "connect":
    case "resume":
      return [answered(CODES.GONE, why)];
    case "disconnect":
    case "yield":
      return [answered(CODES.OK)];
    case "object-created":
      return [{ do: "withdraw" }];
    case "opened":
      return [{ do: "close-link", link: input.link }];
    case "peer-invited":
      return [{ do: "answer-invitation", url: input.url, code: CODES.GONE, why }];
    default:
      return [];
  }
}
