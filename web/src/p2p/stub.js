/**
 * The stubs of direct links, requester and handler. They execute the commands of the state machine
 * in `end.js`, by messages and by the browser's `RTCPeerConnection`.
 */

import { domainOf, isBelow, runtimeOf, statusOf } from "../address.js";
import { sleep } from "../clock.js";
import { CODES, DROPS } from "../constants.js";
import * as constants from "../constants.js";
import { Host } from "../host.js";
import { BadMessageError, isObject, textOf } from "../json.js";
import { sha256Hex } from "../keys.js";
import { TokenBucket } from "../limits.js";
import { Entity } from "../machine.js";
import { codeOf, isFinal, isRequest, isResponse, isSuccess, malformedAnswer, reasonIn, refuse, replyTo, viaOf } from "../message.js";
import { ObserverCore } from "../sync/copy.js";
import { isLink } from "../sync/reported.js";
import { changeIn } from "../value.js";
import { Channel, OPTIONS } from "./channel.js";
import { LinkEnd, negotiationOf } from "./end.js";
import { signed, signedIce, verified } from "./guard.js";
import { LiveLink } from "./link.js";
import { Lists } from "./lists.js";
import { PairOrder } from "./order.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("./end.js").LinkPort} LinkPort */

/**
 * Settings that all stubs of a runtime share.
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

/** One attempt to open a data channel, for one negotiation. */
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
    // A candidate that the browser cannot use is ignored.
    else this.connection.addIceCandidate(ice).catch(() => {});
  }
}

/** Data of a stub about one end of a link: the negotiation, both objects, and the live link. */
class End {
  /** @type {string | null} */
  ownObject = null;
  /** @type {string | null} */
  peerObject = null;
  /** The peer's object. @type {Host<ObserverCore, import("../sync/copy.js").CopyPort> | null} */
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
  /** The order that it is to answer. @type {Message | null} */
  command = null;

  /**
   * @param {import("./end.js").Terms} terms
   * @param {(end: End) => Host<LinkEnd, LinkPort>} host
   */
  constructor(terms, host) {
    this.terms = terms;
    this.host = host(this);
    this.identity = /** @type {import("../message.js").SenderIdentity} */ ({
      runtime: terms.remote,
      user: null,
      vouchedBy: "none",
    });
  }

  get core() {
    return this.host.core;
  }

  /** @param {(core: LinkEnd, now: number) => void} call */
  run(call) {
    this.host.run(call);
  }
}

/** Base of both kinds of stubs, with any number of ends of links. */
class LinkStub {
  isStub = true;
  #shared;
  /** @type {"requester" | "handler"} */
  #role;
  /** @type {Map<string, End>} */
  #ends = new Map();
  /** Invitations that are not answered, by object. @type {Map<string, Message>} */
  #invitations = new Map();
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
  }

  get ends() {
    return this.#ends;
  }

  get now() {
    return this.#shared.tools.clock.now();
  }

  /**
   * @param {import("./end.js").Terms} terms
   * @param {string} [offer] the object with the offer that a handler answers
   */
  make(terms, offer) {
    const make = (/** @type {LinkPort} */ port) => new LinkEnd(terms, this.#role, port, offer);
    return new End(terms, (end) => new Host(this.#shared.tools.clock, this.#portOf(end), make));
  }

  /** @param {End} end */
  add(end) {
    this.#ends.set(end.terms.name, end);
    end.run((core, now) => core.start(now));
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
    // Messages of creators about objects of this runtime are reported by the sync manager.
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
    const end = [...this.#ends.values()].find((one) => one.peerObject === body.resource);
    if (type === "update" && from === this.#manager && end) {
      this.answer(message, CODES.OK);
      return this.#shown(end, body.value);
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

  // ---- what an end asks for

  /**
   * @param {End} end
   * @returns {LinkPort}
   */
  #portOf(end) {
    const { terms } = end;
    const { context } = this;
    return {
      step: (step) => this.#shared.tools.trace.step(this.url, step),
      announce: (value, why) => {
        const body = { value, resource: terms.remote, description: why || undefined, link: terms.name };
        context.port.publish(value === "created" ? "create" : "update", statusOf(this.url), body);
      },
      answerCommand: (code, why) => {
        if (end.command) this.answer(end.command, code, why);
        end.command = null;
      },
      askRow: () => void this.ask("read", `${this.runtime}/registry`, { resource: terms.remote }).then((answer) => {
        const { role, status } = isObject(answer.body.value) ? answer.body.value : {};
        const hasOwnRequest = isSuccess(answer) && role === "requester" && status !== "failed";
        end.run((core, now) => core.rowReported(hasOwnRequest, now));
      }),
      createObject: () => void this.#createObject(end),
      invite: () => {
        const value = { runtime: this.runtime, reporter: this.url };
        const body = { resource: end.ownObject, schema: this.#schema, authorise: [terms.peer], value };
        void this.ask("create", this.#manager, body).then((answer) =>
          end.run((core) => core.invitationAnswered(codeOf(answer), whyOf(answer))));
      },
      answerInvitation: (url, code, why) => {
        const invitation = this.#invitations.get(url);
        this.#invitations.delete(url);
        if (invitation) this.answer(invitation, code, why);
      },
      observe: (url) => this.#observe(end, url),
      pin: ({ identity }) => (end.identity = identity),
      listen: (offer) => void this.#listen(end, offer),
      offer: (sdp) => {
        end.sdp = sdp;
        this.#change(end, () => this.#offer(end, sdp));
      },
      trickle: (ice) => {
        const { sdp } = end;
        const bond = this.#ownBond(end);
        const change = { attribute: "iceCandidates", attributeType: "array", operation: "add" };
        this.#change(end, async () => [{ ...change, value: [await signedIce(this.#shared.identity, bond, sdp, ice)] }]);
      },
      requestDial: (status) => this.#change(end, async () => [{ attribute: "status", value: status }]),
      renew: (_, status) => {
        end.opening?.connection.close();
        end.opening = null;
        end.ice = [];
        this.#change(end, async () => [{ value: this.#value(status) }]);
      },
      hearIce: (ice) => {
        end.ice.push(ice);
        end.opening?.hear(ice);
      },
      dial: (sdp) => {
        const { negotiation } = end.core;
        end.opening?.answer("answer", sdp).catch(() => end.run((core) => core.dialFailed(negotiation)));
      },
      useLink: (link) => this.#use(end, link),
      releaseLink: () => this.#release(end),
      closeLink: (link) => {
        if (end.link?.name === link) {
          end.link.leave();
          this.#release(end);
        } else end.proven.get(link)?.leave();
        end.proven.delete(link);
      },
      withdraw: () => this.#withdraw(end),
      end: () => this.#ended(end),
    };
  }

  /** @param {End} end */
  #ended(end) {
    const { name } = end.terms;
    const { opening } = end;
    // Data that was written before is still sent.
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
      return end.run((core) => core.objectRefused(whyOf(answer)));
    }
    end.ownObject = resource;
    end.run((core, now) => core.objectCreated(now));
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
   * Change the own Connection object, after earlier changes are complete.
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
      end.copy?.run((copy, now) => copy.giveUp("the observer leaves", now));
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
    const { clock, trace } = this.#shared.tools;
    /** @type {import("../sync/copy.js").CopyPort} */
    const port = {
      step: (step) => trace.step(this.url, step),
      show: (version, data) => {
        trace.record(end.terms.name, { k: "obj", op: "apply", key: url, version, by: this.url });
        this.#see(end, data);
      },
      read: (number) => void this.#read(end, number),
      end: () => {},
    };
    // The link shows whether the peer is reachable, so a copy without changes is not read again.
    end.copy = new Host(clock, port, (asked) => new ObserverCore(url, this.url, asked, Infinity));
    end.copy.run((copy, now) => copy.begin(now));
    void this.ask("subscribe", this.#manager, { resource: url, schema: this.#schema }).then((answer) => {
      if (end.peerObject !== url) return;
      if (isSuccess(answer)) return this.#shown(end, answer.body.value);
      end.copy?.run((copy, now) => copy.giveUp(whyOf(answer), now));
      end.run((core) => core.observeRefused(whyOf(answer)));
    });
  }

  /**
   * @param {End} end
   * @param {Json | undefined} value
   */
  #shown({ copy }, value) {
    const { version, data } = isObject(value) ? value : {};
    if (typeof version === "number" && isObject(data)) copy?.run((core, now) => core.become({ version, data }, now));
  }

  /**
   * @param {End} end
   * @param {Message} message
   */
  #changed(end, { type, from, body }) {
    const { copy, peerObject } = end;
    if (!isBelow(from, peerObject ?? "")) return;
    if (type === "delete") {
      copy?.run((core, now) => core.delete(now));
      end.peerObject = null;
      return end.run((core) => core.peerDeleted());
    }
    const change = changeOf(body);
    if (change) copy?.run((core, now) => core.change(change, now));
  }

  /**
   * @param {End} end
   * @param {number} number
   */
  async #read(end, number) {
    const answer = await this.ask("read", end.peerObject ?? "", {});
    if (isSuccess(answer)) this.#shown(end, answer.body.value);
    else end.copy?.run((core, now) => core.readFailed(number, whyOf(answer), now));
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
      const seen = await verified(this.#shared.identity, data, bond);
      if (this.#ends.get(terms.name) === end) end.run((core, now) => core.peerSeen({ status, ...seen }, now));
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
    const found = (ice) => (early ? early.push(ice) : end.run((core) => core.iceFound(ice, negotiation)));
    const lost = () => end.run((core) => core.dialFailed(negotiation));
    const proves = /** @param {Channel} channel */ (channel) => void this.#prove(end, channel, negotiation);
    try {
      const opening = new Opening(this.#shared, servers, proves, found, lost);
      end.opening?.connection.close();
      end.opening = opening;
      for (const ice of end.ice) opening.hear(ice);
      const sdp = await opening.describe(offer);
      if (end.opening !== opening) return;
      end.run((core) => core.described(sdp, negotiation));
      const waiting = early;
      early = null;
      for (const ice of waiting) found(ice);
    } catch (error) {
      // Without a channel the set-up ends by its timeout; the peer's description is the cause.
      console.warn("protofly: no data channel", error);
    }
  }

  /**
   * Return the configured STUN and TURN servers, or else those of the domain (M-58).
   *
   * @returns {Promise<RTCIceServer[]>}
   */
  async #servers() {
    const { iceServers, tools } = this.#shared;
    if (iceServers) return iceServers;
    const answer = this.ask("read", `domain://qos.${domainOf(this.runtime)}`, {});
    const { value } = (await Promise.race([answer, sleep(tools.clock, constants.ICE_INQUIRY)]))?.body ?? {};
    const { servers } = isObject(value) ? value : {};
    return Array.isArray(servers) ? /** @type {any[]} */ (servers) : [];
  }

  /**
   * Exchange greetings with the name of the link; then the link is open.
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
    end.run((core, now) => core.linkOpened(name, negotiation, now));
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
      behind: (from, to, link) => order.behind(from, to, link),
      announced: (line) => order.announced(line, terms.name),
      ended: (isOrderly, why) => end.run((core, now) => core.linkLost(name, isOrderly, why, now)),
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
    for (const end of [...this.#ends.values()]) end.run((core) => core.disconnect("the stub is removed"));
  }
}

/** The orders of a requester. @type {Map<unknown, (core: LinkEnd, now: number, negotiation: number) => void>} */
const ORDERS = new Map([
  ["connect", (core, now) => core.connect(now)],
  ["disconnect", (core) => core.disconnect("disconnect asked")],
  ["yield", (core, _, negotiation) => core.yieldToPeer(negotiation)],
  ["resume", (core, _, negotiation) => core.resume(negotiation)],
]);

/** The stub that requests a link to one other runtime. */
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
    this.#end = this.make(terms);
    queueMicrotask(() => this.add(this.#end));
  }

  /** @param {Message} message */
  invited(message) {
    const url = message.from.replace(/\/subscription$/, "");
    this.keep(message, url);
    this.#end.run((core) => core.peerInvited(url, textOf(message.body.source)));
  }

  /** @param {Message} command */
  commanded(command) {
    const { method, negotiation: number } = command.body;
    const negotiation = typeof number === "number" ? number : 1;
    const order = ORDERS.get(method);
    if (!order) return this.answer(command, CODES.MALFORMED, "no such command");
    this.#end.run((core, now) => {
      this.#end.command = command;
      order(core, now, negotiation);
    });
  }
}

/** The stub that accepts the links that other runtimes request. */
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
    // As a stub, a handler stays in the state created: only its links become live (SC-04).
    this.#self = new Entity("stub_connection", this.url);
    this.#step("constructed");
  }

  /**
   * Make a transition of the stub itself, and publish its new state.
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
    for (const end of [...this.ends.values()]) {
      if (end.terms.remote === remote) end.run((core) => core.disconnect("the requester asks for a new link"));
    }
    const offer = message.from.replace(/\/subscription$/, "");
    this.#minted += 1;
    const terms = { own: this.runtime, remote, name: `${this.url}/conn/${this.#minted}`, peer };
    this.keep(message, offer);
    this.add(this.make(terms, offer));
  }

  /** @param {Message} command */
  commanded(command) {
    const { method, params, link } = command.body;
    if (method !== "disconnect") return this.answer(command, CODES.MALFORMED, "the only command is disconnect");
    const named = typeof link === "string" ? [link] : Array.isArray(params) ? params : [];
    for (const end of [...this.ends.values()]) {
      const isNamed = named.includes(end.terms.name) || named.includes(end.terms.remote);
      if (isNamed || !named.length) end.run((core) => core.disconnect("disconnect asked"));
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
 * Return the functions that make the stubs of direct links for a runtime.
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
