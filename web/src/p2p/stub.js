/**
 * The stubs of direct links, requester and handler: they perform the effects of `end.js` by
 * messages of the stub, and by `RTCPeerConnection`.
 */

import { domainOf, isBelow, runtimeOf, statusOf } from "../address.js";
import { Alarm, sleep } from "../clock.js";
import { CODES, DROPS } from "../constants.js";
import * as constants from "../constants.js";
import { BadMessageError, isObject, textOf } from "../json.js";
import { sha256Hex } from "../keys.js";
import { TokenBucket } from "../limits.js";
import { Entity } from "../machine.js";
import { codeOf, isFinal, isRequest, isResponse, isSuccess, malformedAnswer, reasonIn, refuse, replyTo, viaOf } from "../message.js";
import { ObserverCore } from "../sync/copy.js";
import { isLink } from "../sync/reported.js";
import { changeIn } from "../value.js";
import { Channel, OPTIONS } from "./channel.js";
import { afterTheEnd, LinkEnd } from "./end.js";
import { signed, signedIce, verified } from "./guard.js";
import { LiveLink } from "./link.js";
import { Lists } from "./lists.js";
import { negotiationOf } from "./negotiation.js";
import { PairOrder } from "./order.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("./end.js").Input} Input */
/** @typedef {import("./end.js").Effect} Effect */

/**
 * What all stubs of a runtime share.
 * @typedef {object} Shared
 * @property {import("../bus.js").Tools} tools
 * @property {import("../bus.js").MessageBus} bus
 * @property {import("./guard.js").Identity} identity
 * @property {RTCCertificate} certificate
 * @property {RTCIceServer[] | null} iceServers null: those that the domain names
 * @property {boolean} relayOnly whether nothing but servers of TURN is used
 * @property {import("./order.js").PairOrder} order
 */

const HELLO = /^[0-9a-f]{32}$/;

/** @param {Message} answer */
const whyOf = (answer) => (isSuccess(answer) ? "" : reasonIn(answer) || `refused with ${codeOf(answer)}`);

/** @param {JsonObject} body */
function changeOf(body) {
  try {
    return changeIn(body);
  } catch {
    return null;
  }
}

/** A data channel that is being opened, in one negotiation. */
class Opening {
  /** @type {import("./end.js").Ice[]} */
  #early = [];
  #isAnswered = false;
  /** @type {Channel | null} */
  #channel = null;

  /**
   * @param {Shared} shared
   * @param {RTCIceServer[]} iceServers
   * @param {(channel: Channel) => void} onOpen
   * @param {(ice: import("./end.js").Ice) => void} onIce
   * @param {(why: string) => void} onLost
   */
  constructor({ tools, certificate, relayOnly }, iceServers, onOpen, onIce, onLost) {
    const iceTransportPolicy = relayOnly ? "relay" : "all";
    const connection = new RTCPeerConnection({ certificates: [certificate], iceServers, iceTransportPolicy });
    this.connection = connection;
    const channel = connection.createDataChannel("protofly", OPTIONS);
    channel.onopen = () => onOpen((this.#channel = new Channel(channel, tools.clock)));
    connection.onicecandidate = ({ candidate }) => {
      const { candidate: text = "", sdpMid = null, sdpMLineIndex = null } = candidate?.toJSON() ?? {};
      onIce({ candidate: text, sdpMid, sdpMLineIndex });
    };
    connection.onconnectionstatechange = () => {
      if (connection.connectionState !== "failed") return;
      if (this.#channel) this.#channel.end("the connection has failed");
      else onLost("the connection has failed");
    };
  }

  /**
   * Return the session description of this end.
   *
   * @param {string | null} offer
   */
  async describe(offer) {
    const { connection } = this;
    if (offer !== null) await this.answer("offer", offer);
    const made = await (offer === null ? connection.createOffer() : connection.createAnswer());
    await connection.setLocalDescription(made);
    return made.sdp ?? "";
  }

  /**
   * @param {"offer" | "answer"} type
   * @param {string} sdp
   */
  async answer(type, sdp) {
    await this.connection.setRemoteDescription({ type, sdp });
    this.#isAnswered = true;
    for (const ice of this.#early.splice(0)) this.hear(ice);
  }

  /** @param {import("./end.js").Ice} ice */
  hear(ice) {
    if (!this.#isAnswered) this.#early.push(ice);
    // One that cannot be tried is none.
    else this.connection.addIceCandidate(ice).catch(() => {});
  }
}

/** One end of a link, as its stub has it. */
class End {
  /** @type {string | null} */
  ownObject = null;
  /** @type {string | null} */
  peerObject = null;
  /** @type {ObserverCore | null} */
  copy = null;
  /** @type {Opening | null} */
  opening = null;
  /** The peer's candidates of this negotiation. @type {import("./end.js").Ice[]} */
  ice = [];
  /** Channels that are proven and not used yet, by name. @type {Map<string, Channel>} */
  proven = new Map();
  /** @type {LiveLink | null} */
  link = null;
  sdp = "";
  /** What is written to the own object, in order. @type {Promise<unknown>} */
  writes = Promise.resolve();
  /** What is read of the peer's object, in order. @type {Promise<unknown>} */
  reads = Promise.resolve();

  /**
   * @param {import("./end.js").Terms} terms
   * @param {LinkEnd} core
   */
  constructor(terms, core) {
    this.terms = terms;
    this.core = core;
    this.identity = /** @type {import("../message.js").SenderIdentity} */ ({
      runtime: terms.remote,
      user: null,
      vouchedBy: "none",
    });
  }
}

/** A stub with any number of ends. */
class LinkStub {
  isStub = true;
  #shared;
  /** @type {"requester" | "handler"} */
  #role;
  /** @type {Map<string, End>} */
  #ends = new Map();
  /** Invitations that are not answered, by object. @type {Map<string, Message>} */
  #invitations = new Map();
  /** @type {Message | null} */
  #command = null;
  #alarm;
  #isClosed = false;

  /**
   * @param {Shared} shared
   * @param {import("../routes.js").StubContext} context
   * @param {"requester" | "handler"} role
   */
  constructor(shared, context, role) {
    this.#shared = shared;
    this.context = context;
    this.#role = role;
    this.name = context.url;
    this.url = context.url;
    this.runtime = shared.tools.runtime;
    this.#alarm = new Alarm(shared.tools.clock, () => this.#timeOver());
  }

  get ends() {
    return this.#ends;
  }

  get now() {
    return this.#shared.tools.clock.now();
  }

  /** @param {End} end */
  add(end) {
    this.#ends.set(end.terms.name, end);
    this.feed(end, { on: "started" });
  }

  /**
   * @param {"create" | "read" | "update" | "delete" | "subscribe" | "unsubscribe"} type
   * @param {string} to
   * @param {JsonObject} body
   */
  ask(type, to, body) {
    return this.context.port.ask(type, to, body);
  }

  get #manager() {
    return `${this.runtime}/sm`;
  }

  get #schema() {
    return `hyperty-catalogue://catalogue.${domainOf(this.runtime)}/.well-known/dataschema/Connection`;
  }

  // ---- in

  /** @param {Message} message */
  take(message) {
    if (message.to === this.url) this.#taken(message);
    else {
      const end = [...this.#ends.values()].find((one) => message.to === `${one.peerObject}/changes`);
      if (end) this.#changed(end, message);
      else return this.send(message, this.url);
    }
    return true;
  }

  /**
   * Send a message by a link.
   *
   * @param {Message} message
   * @param {string} name address of the end
   */
  send(message, name) {
    const { bus, tools } = this.#shared;
    const object = /^(.*)\/children\/[^/]+$/s.exec(message.to)?.[1];
    // What creators write of objects that are reported here, the sync manager reports.
    if (object !== undefined && message.from !== object && bus.isLocal(object)) return true;
    const end = this.#ends.get(name);
    if (viaOf(message).includes(name)) tools.counters.drop(DROPS.LOOP, this.url, message);
    else if (!end?.link) queueMicrotask(() => bus.handBack([message]));
    else this.#write(end.link, message, name);
    return true;
  }

  /**
   * @param {LiveLink} link
   * @param {Message} message
   * @param {string} name
   * @returns {void}
   */
  #write(link, message, name) {
    const { tools } = this.#shared;
    /** @type {[number, string, number | null] | null} */
    let refusal = null;
    try {
      const why = `${constants.STUB_QUEUE} messages wait for the link already`;
      if (!link.send(message)) refusal = [CODES.UNAVAILABLE, why, constants.RETRY_AFTER];
    } catch (error) {
      if (!(error instanceof BadMessageError)) throw error;
      if (isFinal(message)) return this.#write(link, malformedAnswer(message, error.message), name);
      refusal = [error.code, error.message, null];
    }
    if (!refusal) return;
    tools.counters.drop(DROPS.OVERFLOW, this.url, message);
    tools.trace.message(this.url, "drop", message, { reason: DROPS.OVERFLOW });
    if (isRequest(message)) this.context.port.post(refuse(message, ...refusal), name);
  }

  /** @param {Message} message */
  #taken(message) {
    if (isResponse(message)) return;
    const { type, from, body } = message;
    const shown = [...this.#ends.values()].find((one) => one.peerObject === body.resource);
    if (type === "update" && from === this.#manager && shown) {
      this.answer(message, CODES.OK);
      return this.#shown(shown, body.value);
    }
    if (!isRequest(message)) return;
    const isOurs = isBelow(from, this.runtime);
    if (!isOurs && (type === "execute" || type === "subscribe")) {
      return this.answer(message, CODES.FORBIDDEN, "a stub takes commands from its own runtime only");
    }
    if (!isOurs && isLink(viaOf(message).at(-1) ?? "")) {
      return this.answer(message, CODES.FORBIDDEN, "an invitation comes by the node, and by no link");
    }
    if (type === "create") this.invited(message);
    else if (type === "execute") this.commanded(message);
    else if (type === "unsubscribe") this.answer(message, CODES.OK);
    else this.listensFor(message);
  }

  /** @param {Message} message */
  invited(message) {
    this.answer(message, CODES.NOT_FOUND);
  }

  /** @param {Message} message */
  commanded(message) {
    this.answer(message, CODES.NOT_FOUND);
  }

  /** @param {Message} message */
  listensFor(message) {
    this.answer(message, CODES.NOT_FOUND, "a stub of a link does not do this");
  }

  /**
   * @param {Message} request
   * @param {number} code
   * @param {string} [why]
   */
  answer(request, code, why) {
    this.context.port.post(replyTo(request, code, why ? { description: why } : {}));
  }

  /**
   * @param {Message} invitation
   * @param {string} url
   */
  keep(invitation, url) {
    this.#invitations.set(url, invitation);
  }

  /**
   * Feed an order; its answer is among the effects.
   *
   * @param {Message} command
   * @param {End | undefined} end
   * @param {Input} input
   */
  order(command, end, input) {
    this.#command = command;
    if (end) this.feed(end, input);
    else this.#perform(null, afterTheEnd(input));
    if (this.#command) this.answer(command, CODES.OK);
    this.#command = null;
  }

  /**
   * @param {End} end
   * @param {Input} input
   */
  feed(end, input) {
    this.#perform(end, end.core.feed(input, this.now));
    this.#schedule();
  }

  #schedule() {
    const ends = [...this.#ends.values()];
    this.#alarm.set(Math.min(Infinity, ...ends.flatMap((one) => [one.core.deadline, one.copy?.deadline ?? Infinity])));
  }

  #timeOver() {
    for (const end of this.#ends.values()) {
      if (end.copy && end.copy.deadline <= this.now) this.#feedCopy(end, { on: "copy-time-over" });
      if (end.core.deadline <= this.now) this.feed(end, { on: "time" });
    }
    this.#schedule();
  }

  // ---- effects

  /**
   * @param {End | null} end
   * @param {Effect[]} effects
   */
  #perform(end, effects) {
    for (const effect of effects) {
      if (effect.do === "step") this.#shared.tools.trace.step(this.url, effect);
      else if (effect.do === "answered") {
        if (this.#command) this.answer(this.#command, effect.code, effect.why);
        this.#command = null;
      } else if (end) this.#do(end, effect);
    }
  }

  /**
   * @param {End} end
   * @param {Exclude<Effect, {do: "step" | "answered"}>} effect
   */
  #do(end, effect) {
    const { terms, core } = end;
    switch (effect.do) {
      case "announce": {
        const { state: value, why } = effect;
        const body = { value, resource: terms.remote, description: why || undefined, link: terms.name };
        const type = value === "created" ? "create" : "update";
        return this.context.port.publish(type, statusOf(this.url), body);
      }
      case "ask-row":
        return void this.ask("read", `${this.runtime}/registry`, { resource: terms.remote }).then((answer) => {
          const { role, status } = isObject(answer.body.value) ? answer.body.value : {};
          const hasOwnRequest = isSuccess(answer) && role === "requester" && status !== "failed";
          this.feed(end, { on: "row", hasOwnRequest });
        });
      case "create-object":
        return void this.#createObject(end);
      case "invite": {
        const value = { runtime: this.runtime, reporter: this.url };
        const body = { resource: end.ownObject, schema: this.#schema, authorise: [terms.peer], value };
        return void this.ask("create", this.#manager, body).then((answer) =>
          this.feed(end, { on: "invitation-answered", code: codeOf(answer), why: whyOf(answer) }));
      }
      case "answer-invitation": {
        const invitation = this.#invitations.get(effect.url);
        this.#invitations.delete(effect.url);
        return invitation && this.answer(invitation, effect.code, effect.why);
      }
      case "observe":
        return this.#observe(end, effect.url);
      case "pin":
        end.identity = effect.peer.identity;
        return;
      case "listen":
        return void this.#listen(end, effect.offer);
      case "offer":
        end.sdp = effect.sdp;
        return this.#change(end, () => this.#offer(end, effect.sdp));
      case "trickle": {
        const { sdp } = end;
        const bond = this.#ownBond(end);
        return this.#change(end, async () => [
          {
            attribute: "iceCandidates",
            value: [await signedIce(this.#shared.identity, bond, sdp, effect.ice)],
            attributeType: "array",
            operation: "add",
          },
        ]);
      }
      case "plead":
        return this.#change(end, async () => [{ attribute: "status", value: effect.status }]);
      case "renew":
        end.opening?.connection.close();
        end.opening = null;
        end.ice = [];
        return this.#change(end, async () => [{ value: this.#value(effect.status) }]);
      case "hear-ice":
        end.ice.push(effect.ice);
        return end.opening?.hear(effect.ice);
      case "dial": {
        const { negotiation } = core;
        return void end.opening?.answer("answer", effect.sdp).catch(() =>
          this.feed(end, { on: "dial-failed", negotiation }));
      }
      case "use-link":
        return this.#use(end, effect.link);
      case "release-link":
        return this.#release(end);
      case "close-link":
        if (end.link?.name === effect.link) {
          end.link.leave();
          this.#release(end);
        } else end.proven.get(effect.link)?.leave();
        end.proven.delete(effect.link);
        return;
      case "withdraw":
        return this.#withdraw(end);
      case "ended":
        return this.#ended(end);
    }
  }

  /** @param {End} end */
  #ended(end) {
    const { name } = end.terms;
    const { opening } = end;
    // What is written last still goes out.
    const { clock } = this.#shared.tools;
    clock.at(clock.now() + 2 * constants.GOODBYE_TIMEOUT, () => opening?.connection.close());
    this.#ends.delete(name);
    if (this.#role === "handler") void this.ask("delete", `${this.runtime}/registry`, { resource: name });
  }

  // ---- the own object

  /** @param {string} status */
  #value(status) {
    const type = this.#role === "handler" ? "answer" : "offer";
    return { owner: this.url, status, connectionDescription: { type }, candidates: [], iceCandidates: [] };
  }

  /** @param {End} end */
  async #createObject(end) {
    const value = {
      reporter: this.url,
      data: this.#value(""),
      runtime: this.runtime,
      name: "P2PConnection",
      resources: ["data"],
    };
    const answer = await this.ask("create", this.#manager, { value, schema: this.#schema, p2p: false });
    const { resource } = answer.body;
    if (!isSuccess(answer) || typeof resource !== "string") {
      return this.feed(end, { on: "object-refused", why: whyOf(answer) });
    }
    end.ownObject = resource;
    this.feed(end, { on: "object-created" });
  }

  /** @param {End} end */
  #ownBond({ terms, core, ownObject, peerObject }) {
    return {
      signer: this.runtime,
      reader: terms.remote,
      object: ownObject ?? "",
      answers: this.#role === "handler" ? peerObject ?? "" : "",
      negotiation: core.negotiation,
    };
  }

  /**
   * @param {End} end
   * @param {string} sdp
   */
  async #offer(end, sdp) {
    const fingerprint = /a=fingerprint:(sha-256) (\S+)/i.exec(sdp);
    const print = fingerprint ? `sha-256 ${fingerprint[2].toUpperCase()}` : "";
    const security = await signed(this.#shared.identity, this.#ownBond(end), this.url, sdp, print);
    const type = this.#role === "handler" ? "answer" : "offer";
    return [
      { attribute: "connectionDescription", value: { type, sdp } },
      { attribute: "security", value: security },
    ];
  }

  /**
   * Write changes into the own object, after those before.
   *
   * @param {End} end
   * @param {() => Promise<JsonObject[]>} make
   */
  #change(end, make) {
    end.writes = end.writes.then(async () => {
      for (const change of await make()) {
        if (end.ownObject) void this.ask("update", this.#manager, { resource: end.ownObject, ...change });
      }
    }).catch((error) => console.error("protofly: an offer could not be written", error));
  }

  /** @param {End} end */
  #withdraw(end) {
    const { ownObject, peerObject } = end;
    end.ownObject = null;
    if (peerObject) {
      this.#feedCopy(end, { on: "given-up", why: "the observer leaves" });
      end.peerObject = null;
      void this.ask("unsubscribe", this.#manager, { resource: peerObject });
    }
    if (ownObject) void this.ask("delete", this.#manager, { resource: ownObject });
  }

  // ---- the peer's object

  /**
   * @param {End} end
   * @param {string} url
   */
  #observe(end, url) {
    end.peerObject = url;
    // Its link shows whether the peer is there: a quiet copy needs not ask.
    end.copy = new ObserverCore(url, this.url, Infinity);
    this.#feedCopy(end, { on: "observe-begun" });
    void this.ask("subscribe", this.#manager, { resource: url, schema: this.#schema }).then((answer) => {
      if (end.peerObject !== url) return;
      if (isSuccess(answer)) return this.#shown(end, answer.body.value);
      this.#feedCopy(end, { on: "given-up", why: whyOf(answer) });
      this.feed(end, { on: "observe-refused", why: whyOf(answer) });
    });
  }

  /**
   * @param {End} end
   * @param {Json | undefined} value
   */
  #shown(end, value) {
    const { version, data } = isObject(value) ? value : {};
    if (typeof version === "number" && isObject(data)) {
      this.#feedCopy(end, { on: "snapshot-read", snapshot: { version, data } });
    }
  }

  /**
   * @param {End} end
   * @param {Message} message
   */
  #changed(end, { type, from, body }) {
    const url = end.peerObject ?? "";
    if (!isBelow(from, url)) return;
    if (type === "delete") {
      this.#feedCopy(end, { on: "withdrawn-by-reporter" });
      end.peerObject = null;
      return this.feed(end, { on: "peer-deleted" });
    }
    const change = changeOf(body);
    if (change) this.#feedCopy(end, { on: "changed", change });
  }

  /**
   * @param {End} end
   * @param {import("../sync/copy.js").Input} input
   */
  #feedCopy(end, input) {
    const { copy, peerObject, terms } = end;
    const { trace } = this.#shared.tools;
    if (!copy) return;
    let seen = null;
    for (const effect of copy.feed(input, this.now)) {
      if (effect.do === "step") trace.step(this.url, effect);
      else if (effect.do === "applied") {
        seen = effect.data;
        trace.record(terms.name, { k: "obj", op: "apply", key: peerObject, version: effect.version, by: this.url });
      } else if (effect.do === "read-needed") void this.#read(end, effect.read);
    }
    if (seen) this.#see(end, seen);
    this.#schedule();
  }

  /**
   * @param {End} end
   * @param {number} read
   */
  async #read(end, read) {
    const answer = await this.ask("read", end.peerObject ?? "", {});
    if (isSuccess(answer)) this.#shown(end, answer.body.value);
    else this.#feedCopy(end, { on: "read-failed", read, why: whyOf(answer) });
  }

  /**
   * @param {End} end
   * @param {JsonObject} data
   */
  #see(end, data) {
    const { terms, ownObject, peerObject } = end;
    const status = typeof data.status === "string" ? data.status : "";
    const bond = {
      signer: terms.remote,
      reader: this.runtime,
      object: peerObject ?? "",
      answers: this.#role === "requester" ? ownObject ?? "" : "",
      negotiation: negotiationOf(status),
    };
    end.reads = end.reads.then(async () => {
      const found = await verified(this.#shared.identity, data, bond);
      if (this.#ends.get(terms.name) === end) this.feed(end, { on: "peer-seen", status, ...found });
    });
  }

  // ---- links

  /**
   * @param {End} end
   * @param {string | null} offer
   */
  async #listen(end, offer) {
    const { negotiation } = end.core;
    if (this.#role === "handler" && offer === null) return;
    const servers = await this.#servers();
    if (negotiation !== end.core.negotiation || end.core.hasEnded) return;
    /** @type {import("./end.js").Ice[] | null} */
    let early = [];
    /** @param {import("./end.js").Ice} ice */
    const found = (ice) => (early ? early.push(ice) : this.feed(end, { on: "ice-found", ice, negotiation }));
    const lost = () => this.feed(end, { on: "dial-failed", negotiation });
    const proves = /** @param {Channel} channel */ (channel) => void this.#prove(end, channel, negotiation);
    try {
      const opening = new Opening(this.#shared, servers, proves, found, lost);
      end.opening?.connection.close();
      end.opening = opening;
      for (const ice of end.ice) opening.hear(ice);
      const sdp = await opening.describe(offer);
      if (end.opening !== opening) return;
      this.feed(end, { on: "described", sdp, negotiation });
      const waiting = early;
      early = null;
      for (const ice of waiting) found(ice);
    } catch (error) {
      // Without a channel the set-up ends when its time is over; the peer's words are to blame.
      console.warn("protofly: no data channel", error);
    }
  }

  /**
   * Return the servers of STUN and TURN: the domain may name some (M-58).
   *
   * @returns {Promise<RTCIceServer[]>}
   */
  async #servers() {
    const { iceServers, tools } = this.#shared;
    if (iceServers) return iceServers;
    const asked = this.ask("read", `domain://qos.${domainOf(this.runtime)}`, {});
    const { value } = (await Promise.race([asked, sleep(tools.clock, constants.ICE_INQUIRY)]))?.body ?? {};
    const { servers } = isObject(value) ? value : {};
    return Array.isArray(servers) ? /** @type {any[]} */ (servers) : [];
  }

  /**
   * Greet by name at both ends; then the link is open.
   *
   * @param {End} end
   * @param {Channel} channel
   * @param {number} negotiation
   */
  async #prove(end, channel, negotiation) {
    const own = [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
    const isDialler = this.#role === "requester";
    /** @type {string | null} */
    const greeting = await new Promise((resolve) => {
      channel.onEnd = () => resolve(null);
      channel.onFrame = (frame) => {
        // What follows waits until the link is used.
        channel.onFrame = null;
        resolve(frame);
      };
      const { clock } = this.#shared.tools;
      clock.at(clock.now() + constants.HANDSHAKE_TIMEOUT, () => resolve(null));
      if (isDialler) channel.send(JSON.stringify({ p2p: "hello", nonce: own, secret: "webrtc" }));
    });
    let theirs = "";
    try {
      const { p2p, nonce, secret } = JSON.parse(greeting ?? "{}");
      const isRight = isDialler ? p2p === "opened" : p2p === "hello" && secret === "webrtc";
      if (isRight && HELLO.test(nonce)) theirs = nonce;
    } catch {
      // It is no line of a handshake.
    }
    if (!theirs) return channel.end("the peer does not greet");
    if (!isDialler) channel.send(JSON.stringify({ p2p: "opened", nonce: own }));
    const name = (await sha256Hex(isDialler ? `${own}|${theirs}` : `${theirs}|${own}`)).slice(0, 16);
    end.proven.set(name, channel);
    channel.onEnd = () => end.proven.delete(name);
    this.feed(end, { on: "opened", link: name, negotiation });
  }

  /**
   * @param {End} end
   * @param {string} name
   */
  #use(end, name) {
    const { tools, order } = this.#shared;
    const { terms } = end;
    const channel = /** @type {Channel} */ (end.proven.get(name));
    end.proven.delete(name);
    this.#trace(end, "open", name);
    end.link = new LiveLink(name, channel, {
      stub: terms.name,
      actor: this.url,
      tools,
      sender: end.identity,
      arrived: (message) => {
        const give = () => this.context.arrived(message, terms.name);
        if (order.take(message, terms.name, give)) return;
        tools.counters.drop(DROPS.OVERFLOW, this.url, message);
        tools.trace.message(this.url, "drop", message, { reason: DROPS.OVERFLOW });
        const why = "too many messages of the link wait for earlier ones";
        if (isRequest(message)) end.link?.send(refuse(message, CODES.UNAVAILABLE, why, constants.RETRY_AFTER));
      },
      behind: (from, to) => order.behind(from, to),
      announced: (line) => order.announced(line, terms.name),
      ended: (isOrderly, why) => this.feed(end, { on: "lost", link: name, isOrderly, why }),
    });
  }

  /** @param {End} end */
  #release(end) {
    const { link } = end;
    end.link = null;
    if (!link) return;
    link.breakOff();
    this.#trace(end, "close", link.name);
    this.#shared.bus.handBack(link.owed());
  }

  /**
   * @param {End} end
   * @param {"open" | "close"} op
   * @param {string} link
   */
  #trace({ terms }, op, link) {
    const fields = { k: "link", op, link, a: this.runtime, b: terms.remote, kind: "p2p", stub: terms.name };
    this.#shared.tools.trace.record(this.url, fields);
  }

  /** End all links. Idempotent. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const end of [...this.#ends.values()]) this.feed(end, { on: "disconnect", why: "the stub is removed" });
    this.#alarm.set(Infinity);
  }
}

/** The stub that links this runtime to one other. */
export class Requester extends LinkStub {
  #end;

  /**
   * @param {Shared} shared
   * @param {import("../routes.js").StubContext} context
   */
  constructor(shared, context) {
    super(shared, context, "requester");
    const { remote, handler } = /** @type {import("../links.js").Plan} */ (context.plan);
    const terms = { own: this.runtime, remote, name: context.url, peer: handler };
    this.#end = new End(terms, new LinkEnd(terms, "requester"));
    queueMicrotask(() => this.add(this.#end));
  }

  /** @param {Message} message */
  invited(message) {
    const url = message.from.replace(/\/subscription$/, "");
    this.keep(message, url);
    this.feed(this.#end, { on: "peer-invited", url, source: textOf(message.body.source) });
  }

  /** @param {Message} command */
  commanded(command) {
    const { method, negotiation: number } = command.body;
    const negotiation = typeof number === "number" ? number : 1;
    if (method === "connect") this.order(command, this.#end, { on: "connect" });
    else if (method === "disconnect") this.order(command, this.#end, { on: "disconnect", why: "disconnect asked" });
    else if (method === "yield" || method === "resume") this.order(command, this.#end, { on: method, negotiation });
    else this.answer(command, CODES.MALFORMED, "no such command");
  }
}

/** The stub that takes the links other runtimes ask for. */
export class Handler extends LinkStub {
  #self;
  #tools;
  #minted = 0;
  /** @type {Map<string, TokenBucket>} */
  #rates = new Map();

  /**
   * @param {Shared} shared
   * @param {import("../routes.js").StubContext} context
   */
  constructor(shared, context) {
    super(shared, context, "handler");
    this.#tools = shared.tools;
    // It is a stub, too, which stays created: it leads nowhere, its links do (SC-04).
    this.#self = new Entity("stub_connection", this.url);
    this.#step("constructed");
  }

  /**
   * Take a step of the stub itself, and publish its new state.
   *
   * @param {string} trigger
   * @param {string} [why]
   */
  #step(trigger, why) {
    this.#tools.trace.step(this.url, this.#self.step(trigger, why));
    this.context.port.publish("update", statusOf(this.url), { value: this.#self.state });
  }

  close() {
    super.close();
    if (this.#self.allows("connect-impossible")) this.#step("connect-impossible", "the stub is removed");
  }

  /** @param {Message} message */
  invited(message) {
    const { source, value } = message.body;
    const remote = isObject(value) ? value.runtime : null;
    const peer = textOf(source);
    if (typeof remote !== "string" || !isBelow(peer, remote) || remote === this.runtime) {
      return this.answer(message, CODES.MALFORMED, "the requester is no stub of the runtime it names");
    }
    const bucket = this.#rates.get(remote) ?? new TokenBucket(constants.INVITATION_RATE, constants.INVITATION_BURST);
    if (this.#rates.size < constants.HANDLED_LINKS) this.#rates.set(remote, bucket);
    const others = [...this.ends.values()].filter((one) => one.terms.remote !== remote);
    if (!bucket.trySpend(this.now) || others.length >= constants.HANDLED_LINKS) {
      return this.answer(message, CODES.UNAVAILABLE, "this runtime asks for links too often");
    }
    for (const one of [...this.ends.values()]) {
      if (one.terms.remote === remote) this.feed(one, { on: "disconnect", why: "the requester asks for a new link" });
    }
    const offer = message.from.replace(/\/subscription$/, "");
    this.#minted += 1;
    const terms = { own: this.runtime, remote, name: `${this.url}/conn/${this.#minted}`, peer };
    this.keep(message, offer);
    this.add(new End(terms, new LinkEnd(terms, "handler", offer)));
  }

  /** @param {Message} command */
  commanded(command) {
    const { method, params, link } = command.body;
    if (method !== "disconnect") return this.answer(command, CODES.MALFORMED, "the only command is disconnect");
    const named = typeof link === "string" ? [link] : Array.isArray(params) ? params : [];
    for (const end of [...this.ends.values()]) {
      const isNamed = named.includes(end.terms.name) || named.includes(end.terms.remote);
      if (isNamed || !named.length) this.feed(end, { on: "disconnect", why: "disconnect asked" });
    }
    this.answer(command, CODES.OK);
  }

  /** @param {Message} request */
  listensFor(request) {
    const { resources } = request.body;
    const isKnown = request.type === "subscribe" && Array.isArray(resources) &&
      resources.every((one) => this.ends.has(textOf(one)));
    if (!isKnown) return this.answer(request, CODES.NOT_FOUND, "there is no such link");
    this.answer(request, CODES.OK);
  }
}

/**
 * Return what makes the stubs of a runtime.
 *
 * @param {Omit<Shared, "certificate" | "order">} shared
 * @returns {Promise<import("../routes.js").LinkStubs>}
 */
export async function linkStubs(shared) {
  const algorithm = /** @type {AlgorithmIdentifier} */ ({ name: "ECDSA", namedCurve: "P-256" });
  const certificate = await RTCPeerConnection.generateCertificate(algorithm);
  const order = new PairOrder(shared.tools.clock);
  shared.bus.order = order;
  const whole = { ...shared, certificate, order };
  return {
    handler: (context) => new Handler(whole, context),
    requester: (context) => new Requester(whole, context),
    Lists,
    descriptor: `hyperty-catalogue://catalogue.${shared.tools.domain}/.well-known/protocolstub/P2PRequester`,
  };
}
