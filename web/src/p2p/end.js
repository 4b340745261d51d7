/**
 * Negotiation of one end of a direct link, as a state machine without I/O; see
 * `fsm/p2p/link_end.py`. The link is always a WebRTC data channel.
 */

import { CODES, MAX_ICE_CANDIDATES, SESSION_IDLE } from "../constants.js";
import { Entity } from "../machine.js";

/** @typedef {"requester" | "handler"} Role */
/** @typedef {{own: string, remote: string, name: string, peer: string}} Terms */
/** @typedef {{candidate: string, sdpMid: string | null, sdpMLineIndex: number | null}} Ice */

/**
 * The result of verifying the peer's object: null: not signed yet; a text: why it is refused.
 * @typedef {null | string | {identity: import("../message.js").SenderIdentity, fingerprint: string,
 *   until: number}} Standing
 */

/** The content of the peer's object. @typedef {{status: string, sdp: string | null, ice: Ice[], standing: Standing}} Seen */

/**
 * The commands of the state machine, which its host executes.
 * @typedef {object} LinkPort
 * @property {(step: import("../machine.js").Step) => void} step
 * @property {(state: string, why: string) => void} announce
 * @property {(code: number, why: string) => void} answerCommand
 * @property {() => void} askRow
 * @property {() => void} createObject
 * @property {() => void} invite
 * @property {(url: string, code: number, why: string) => void} answerInvitation
 * @property {(url: string) => void} observe
 * @property {(peer: Exclude<Standing, null | string>) => void} pin
 * @property {(offer: string | null) => void} listen
 * @property {(sdp: string) => void} offer
 * @property {(ice: Ice) => void} trickle
 * @property {(ice: Ice) => void} hearIce
 * @property {(sdp: string) => void} dial
 * @property {(status: string) => void} requestDial pleads with the peer to dial
 * @property {(negotiation: number, status: string) => void} renew
 * @property {(link: string) => void} useLink
 * @property {(link: string) => void} releaseLink
 * @property {(link: string) => void} closeLink
 * @property {() => void} withdraw
 * @property {() => void} end
 */

/** @type {Record<string, string>} */
const GIVE_UP = {
  created: "refused",
  "in-progress": "establish-failed",
  yielding: "establish-failed",
  live: "closed",
};

const ENDED = "the link has ended";

// ---- the status of a Connection object: its negotiation, and pleas

const LATER = /^negotiation-([1-9][0-9]{0,8})(?:-|$)/;

/** @param {string} status */
export const negotiationOf = (status) => Number(LATER.exec(status)?.[1] ?? 1);

/** @param {string} status */
const isPlea = (status) => status.replace(LATER, "").startsWith("unreachable");

/** @param {number} negotiation */
const beginning = (negotiation) => (negotiation === 1 ? "" : `negotiation-${negotiation}`);

/**
 * @param {number} negotiation
 * @param {number} count
 */
const plea = (negotiation, count) =>
  `${negotiation === 1 ? "" : `${beginning(negotiation)}-`}unreachable-${count}`;

/** State machine of one end of one link. */
export class LinkEnd {
  #terms;
  #port;
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
   * @param {LinkPort} port
   * @param {string} [offer] the object with the offer that a handler answers
   */
  constructor(terms, role, port, offer = "") {
    this.#terms = terms;
    this.#port = port;
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

  /** When `timeOver` is due. */
  get deadline() {
    return Math.min(this.#until, this.#lifeUntil);
  }

  /**
   * @param {string} trigger
   * @param {string} [why]
   */
  #move(trigger, why = "") {
    const step = this.#entity.step(trigger, why);
    this.#port.step(step);
    this.#port.announce(step.new, why);
  }

  /** @param {string} trigger of the dialling */
  #moveDialling(trigger) {
    this.#port.step(this.#dialling.step(trigger));
  }

  #stopDialling() {
    if (this.#dialling.state !== "idle") this.#moveDialling("stop");
  }

  /**
   * @param {Entity} life
   * @param {string} trigger
   * @param {number} now
   * @param {string[]} [given]
   */
  #moveLife(life, trigger, now, given = []) {
    const step = life.step(trigger, "", given);
    const until = now + life.patience;
    // The time for a set-up counts from its beginning.
    this.#lifeUntil = until === Infinity ? until : Math.min(until, this.#lifeUntil);
    this.#port.step(step);
    return step.new;
  }

  get #loses() {
    return `${CODES.CONFLICT}: the link requested by ${this.#terms.remote} wins`;
  }

  // ---- set-up

  /** @param {number} now */
  start(now) {
    this.#move("started");
    this.#until = now + this.#entity.patience;
    this.#moveDialling(this.#life ? "stop" : "round");
    if (!this.#life) return this.#port.createObject();
    this.#moveLife(this.#life, "invited", now);
    this.#port.askRow();
  }

  /**
   * @param {boolean} hasOwnRequest
   * @param {number} now
   */
  rowReported(hasOwnRequest, now) {
    if (this.#isInvited || this.hasEnded || !this.#life) return;
    const given = [
      ...(hasOwnRequest ? ["own request"] : []),
      ...(this.#terms.own < this.#terms.remote ? ["own runtime smaller"] : []),
    ];
    if (this.#moveLife(this.#life, "row-reported", now, given) === "closed") {
      const why = `simultaneous open: the link requested by ${this.#terms.own} wins`;
      this.#refuse(why);
      return this.#giveUp(why);
    }
    this.#isInvited = true;
    this.#port.answerInvitation(this.offer, CODES.OK, "");
    this.#port.observe(this.offer);
  }

  /** @param {number} now */
  objectCreated(now) {
    if (this.hasEnded) return this.#port.withdraw();
    this.#move("object-returned");
    this.#until = Math.min(this.#until, now + this.#entity.patience);
    this.#port.listen(this.#life ? this.#sdp : null);
    this.#port.invite();
  }

  /** @param {string} why */
  objectRefused(why) {
    this.#giveUp(why);
  }

  /**
   * @param {number} code
   * @param {string} why
   */
  invitationAnswered(code, why) {
    if (code >= 300) this.#refused(why || `refused ${code}`);
  }

  /**
   * @param {string} sdp of this end
   * @param {number} negotiation
   */
  described(sdp, negotiation) {
    if (!this.hasEnded && negotiation === this.negotiation) this.#port.offer(sdp);
  }

  /**
   * @param {Ice} ice of this end
   * @param {number} negotiation
   */
  iceFound(ice, negotiation) {
    if (this.hasEnded || negotiation !== this.negotiation || !isNew(this.#found, ice)) return;
    this.#port.trickle(ice);
  }

  /**
   * Refuse the invitation that a handler has received, unless it was answered before.
   *
   * @param {string} why
   */
  #refuse(why) {
    if (!this.#life || this.#isInvited) return;
    this.#isInvited = true;
    this.#port.answerInvitation(this.offer, CODES.CONFLICT, why);
  }

  /**
   * @param {string} url
   * @param {string} source
   */
  peerInvited(url, source) {
    const answer = (/** @type {number} */ code, why = "") => this.#port.answerInvitation(url, code, why);
    if (this.hasEnded) return answer(CODES.GONE, ENDED);
    if (this.#life) return answer(CODES.CONFLICT, "the invitation came before");
    if (source !== this.#terms.peer || !this.#isSettingUp) {
      return answer(CODES.FORBIDDEN, "this object is not expected here");
    }
    if (this.#isInvited) return answer(CODES.CONFLICT, "there is an answer object already");
    this.#isInvited = true;
    answer(CODES.OK);
    this.#port.observe(url);
  }

  /** @param {string} why */
  observeRefused(why) {
    this.#refused(why);
  }

  peerDeleted() {
    this.#giveUp("the peer deleted its object");
  }

  /**
   * @param {Seen} seen
   * @param {number} now
   */
  peerSeen(seen, now) {
    if (this.hasEnded) return;
    if (this.#life) this.#offerSeen(this.#life, seen, now);
    else this.#answerSeen(seen);
  }

  /**
   * @param {Standing} standing
   * @returns {standing is Exclude<Standing, null | string>} whether it is believed
   */
  #believe(standing) {
    if (standing === null) return false;
    if (typeof standing === "string") this.#refused(standing);
    else if (this.#peer && this.#peer.fingerprint !== standing.fingerprint) {
      this.#refused("the peer offers another certificate than before");
    } else if (this.#peer?.until !== standing.until) {
      this.#peer = standing;
      if (this.state === "live") this.#until = standing.until;
      this.#port.pin(standing);
    }
    return typeof standing !== "string" && !this.hasEnded;
  }

  /** @param {Seen} seen */
  #answerSeen({ status, sdp, ice, standing }) {
    if (negotiationOf(status) !== this.negotiation || !this.#believe(standing)) return;
    this.#hearIce(ice);
    if (this.#pleads(status) && this.#isSettingUp) return this.#giveUp("no candidate of either end opens");
    if (sdp === null) return this.#refused("the peer takes no data channel");
    this.#sdp ??= sdp;
    this.#dial();
  }

  /** @param {string} status */
  #pleads(status) {
    const pleads = isPlea(status) && status !== this.#peerPlea;
    this.#peerPlea = status;
    return pleads;
  }

  /** Connect by the peer's answer once; after a failure, ask the peer to connect. */
  #dial() {
    if (this.#dialling.state !== "ready" || this.#sdp === null) return;
    if (this.#isDialled) return this.#plead();
    this.#isDialled = true;
    this.#moveDialling("dial");
    this.#port.dial(this.#sdp);
  }

  #plead() {
    this.#pleas += 1;
    this.#moveDialling(this.#life ? "stop" : "plead");
    this.#port.requestDial(plea(this.negotiation, this.#pleas));
  }

  /** @param {Ice[]} candidates */
  #hearIce(candidates) {
    for (const ice of candidates) if (isNew(this.#heard, ice)) this.#port.hearIce(ice);
  }

  /**
   * Process the peer's offer; ignore an offer of another negotiation than this one or the next.
   *
   * @param {Entity} life
   * @param {Seen} seen
   * @param {number} now
   */
  #offerSeen(life, { status, sdp, ice, standing }, now) {
    const number = negotiationOf(status);
    if (number !== this.negotiation && number !== this.negotiation + 1) return;
    if (number !== this.negotiation) {
      if (this.state === "created") return this.#giveUp("the offer was void before it was answered");
      const print = typeof standing === "object" ? standing?.fingerprint : undefined;
      if (this.state === "live" && (print === undefined || this.#peer?.fingerprint !== print)) return;
      this.#renew(number, "the requester offers anew", now);
    }
    if (!this.#believe(standing)) return;
    if (sdp === null) return this.#refused("the peer offers no data channel");
    if (this.#answered !== this.negotiation) {
      this.#answered = this.negotiation;
      this.#sdp = sdp;
      if (life.state === "observing") {
        this.#moveLife(life, "answer", now);
        this.#port.createObject();
      } else this.#port.listen(sdp);
    }
    this.#hearIce(ice);
    if (!this.#pleads(status) || this.state === "live") return;
    this.#moveDialling("round");
    this.#plead();
  }

  // ---- links

  /**
   * @param {string} link
   * @param {number} negotiation
   * @param {number} now
   */
  linkOpened(link, negotiation, now) {
    if (this.hasEnded || negotiation !== this.negotiation || !this.#peer || this.state !== "in-progress") {
      return this.#port.closeLink(link);
    }
    this.#link = link;
    this.#until = this.#peer.until;
    this.#port.useLink(link);
    this.#move("established");
    this.#stopDialling();
    if (this.#life?.state === "answering") this.#moveLife(this.#life, "link-open", now);
  }

  /**
   * @param {string} link
   * @param {boolean} isOrderly
   * @param {string} why
   * @param {number} now
   */
  linkLost(link, isOrderly, why, now) {
    if (link !== this.#link) return;
    this.#link = null;
    this.#until = now + SESSION_IDLE;
    this.#move("closed", why);
    this.#port.releaseLink(link);
    if (isOrderly) this.#end();
  }

  /** @param {number} negotiation */
  dialFailed(negotiation) {
    if (this.#dialling.state !== "dialling" || negotiation !== this.negotiation) return;
    this.#moveDialling("dial-failed");
    this.#dial();
  }

  /**
   * @param {number} negotiation
   * @param {string} why
   * @param {number} now
   */
  #renew(negotiation, why, now) {
    if (this.#link !== null) this.linkLost(this.#link, false, why, now);
    if (this.state === "disconnected") {
      this.#move("renegotiated", why);
      this.#until = now + this.#entity.patience;
    }
    this.negotiation = negotiation;
    this.#sdp = null;
    this.#isDialled = false;
    this.#found.clear();
    this.#heard.clear();
    this.#stopDialling();
    this.#port.renew(negotiation, beginning(negotiation));
    // A handler answers what the requester will offer.
    if (this.#life) return;
    this.#moveDialling("round");
    this.#port.listen(null);
  }

  // ---- commands

  /**
   * Reconnect the link, by a new negotiation.
   *
   * @param {number} now
   */
  connect(now) {
    if (this.hasEnded) return this.#port.answerCommand(CODES.GONE, ENDED);
    if (this.#life) return this.#port.answerCommand(CODES.FORBIDDEN, "only the requester's end reconnects");
    this.#port.answerCommand(CODES.ACCEPTED, "reconnecting");
    if (this.state === "disconnected") this.#renew(this.negotiation + 1, "a new offer is needed", now);
  }

  /** @param {string} reason */
  disconnect(reason) {
    const why = this.state === "yielding" ? this.#loses : reason;
    if (!this.hasEnded) this.#refuse(why);
    this.#giveUp(why);
    this.#port.answerCommand(CODES.OK, "");
  }

  /**
   * Wait with this set-up, since the link that the peer has requested takes precedence.
   *
   * @param {number} negotiation
   */
  yieldToPeer(negotiation) {
    const answer = (/** @type {number} */ code, why = "") => this.#port.answerCommand(code, why);
    if (this.hasEnded) return answer(CODES.OK);
    if (this.#life) return answer(CODES.FORBIDDEN);
    if (this.state === "created") this.#giveUp(this.#loses);
    else if (this.state !== "yielding") {
      if (this.state !== "in-progress" || negotiation !== this.negotiation) {
        return answer(CODES.CONFLICT, "the link is not being set up");
      }
      this.#move("yielded", this.#loses);
      this.#stopDialling();
    }
    answer(CODES.OK);
  }

  /** @param {number} negotiation */
  resume(negotiation) {
    if (this.hasEnded) return this.#port.answerCommand(CODES.GONE, ENDED);
    if (this.#life) return this.#port.answerCommand(CODES.FORBIDDEN, "");
    if (this.state !== "yielding" || negotiation !== this.negotiation) {
      return this.#port.answerCommand(CODES.CONFLICT, "the link does not yield");
    }
    this.#move("resumed", "the peer's link has failed");
    this.#port.answerCommand(CODES.OK, "");
    this.#moveDialling("round");
    this.#dial();
  }

  // ---- the end

  /** @param {number} now */
  timeOver(now) {
    if (now < this.deadline) return;
    const late = this.#peer ? "timeout" : "timeout: the peer has signed nothing";
    if (this.state === "live") return this.#giveUp("nobody vouches for the peer any more");
    if (!this.#isSettingUp) return this.#giveUp("the link did not come back");
    this.#refuse("timeout");
    this.#giveUp(late);
  }

  /**
   * End a set-up that was refused; an open link is kept.
   *
   * @param {string} why
   */
  #refused(why) {
    if (this.#isSettingUp) this.#giveUp(why);
  }

  /** @param {string} why */
  #giveUp(why) {
    if (this.hasEnded) return;
    const trigger = GIVE_UP[this.state ?? ""];
    if (trigger) this.#move(trigger, why);
    if (this.#link !== null) this.#port.closeLink(this.#link);
    this.#link = null;
    this.#end();
  }

  #end() {
    this.#until = this.#lifeUntil = Infinity;
    this.#moveDialling("end");
    if (this.#life && !this.#life.mayEnd) this.#port.step(this.#life.step("over"));
    this.#port.withdraw();
    this.#port.end();
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
