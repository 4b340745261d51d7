/**
 * The Message BUS of a runtime, and the MiniBUS of a sandbox (BUS-01 to BUS-17).
 *
 * The routers never wait: a message that is submitted while another one is handled is queued, and
 * handled after that one.
 */

import { domainOf, isBelow, isInbox, lastSegment, registryOf, runtimeOf, schemeOf, statusOf } from "./address.js";
import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { Alarm } from "./clock.js";
import { textOf } from "./json.js";
import { Shares } from "./limits.js";
import { Entity } from "./machine.js";
import * as messages from "./message.js";
import { AnswersKept, DeduplicationWindow, Transactions } from "./transactions.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {"local" | "node-stub" | "p2p-stub"} Origin */
/** @typedef {(response: Message) => void} Reply */

/**
 * A listener: the receiver of the messages to an address. `take` returns false if the mailbox is
 * full; a stub always accepts messages, and sends them at once.
 * @typedef {{name: string, take: (message: Message) => boolean, isStub?: boolean}} Listener
 */

/**
 * A function of the application that permits a message (null), or refuses it for a reason (text).
 * @typedef {(message: Message, direction: "in" | "out") => string | null} Policy
 */

/**
 * @typedef {{sent: (message: Message, isByNode: boolean, isBack: boolean) => void,
 *   settled: (message: Message, isReached?: boolean) => void, arrives: (message: Message) => void,
 *   isLate: (message: Message, path: string) => boolean, came: (message: Message, path: string) => void}} Order
 */

/**
 * The route of a message that has no listener in this runtime: to a stub, or a refusal.
 * @typedef {{stub: string} | {code: number, why: string, retryAfter?: number}} Way
 */

/**
 * @typedef {object} Tools what the parts of a runtime share
 * @property {string} runtime address of the runtime
 * @property {string} domain
 * @property {import("./trace.js").Trace} trace
 * @property {import("./ids.js").Ids} ids
 * @property {import("./clock.js").Clock} clock
 * @property {import("./counters.js").Counters} counters
 * @property {Set<string>} confined addresses of the hyperties in Workers
 * @property {() => import("./message.js").SenderIdentity | null} own who this runtime is, as its
 *   node has said
 */

/** The interface by which one component sends messages to the rest of the runtime. */
export class Port {
  #bus;

  /**
   * @param {MessageBus} bus
   * @param {string} url address of the component
   */
  constructor(bus, url) {
    this.#bus = bus;
    this.url = url;
  }

  /**
   * Submit a message to the Message BUS.
   *
   * @param {Message} message its `from` belongs to the component
   * @param {string} [by] address under which it is submitted, such as that of a link
   */
  post(message, by = this.url) {
    this.#bus.submit(message, by);
  }

  /**
   * Submit a request and return its final answer, which the bus may make itself (404, 408, 503).
   *
   * @param {Message} message
   * @param {{link?: string, provisional?: (response: Message) => void}} [terms] `link`: the only
   *   one that it may go by
   * @returns {Promise<Message>}
   */
  request(message, { link, provisional } = {}) {
    return new Promise((resolve) => {
      /** @param {Message} response */
      const reply = (response) => (messages.isFinal(response) ? resolve(response) : provisional?.(response));
      this.#bus.submit(message, this.url, { reply, link });
    });
  }

  /**
   * Make a request with a new id, submit it, and return its final answer.
   *
   * @param {import("./message.js").MessageType} type
   * @param {string} to
   * @param {JsonObject} body
   * @param {string} [from] an address of the component, or below it
   * @param {{link?: string, provisional?: (response: Message) => void}} [terms]
   */
  ask(type, to, body, from = this.url, terms = {}) {
    return this.request({ id: this.#bus.nextId(from), type, from, to, body }, terms);
  }

  /**
   * Make a message with a new id, and submit it. Answers are delivered to the listener of `from`.
   *
   * @param {import("./message.js").MessageType} type
   * @param {string} to
   * @param {JsonObject} body
   * @param {string} [from]
   * @param {{awaited?: string[], direct?: string[]}} [terms] `awaited`: the runtimes that it is
   *   for, each of which answers a request; `direct`: those of them that a link leads to
   */
  publish(type, to, body, from = this.url, terms = {}) {
    this.#bus.submit({ id: this.#bus.nextId(from), type, from, to, body }, this.url, terms);
  }
}

/** The router of one sandbox, which delivers messages to the components in the sandbox. */
export class MiniBus {
  /** @type {Map<string, Listener>} */
  #listeners = new Map();
  /** @type {Message[]} */
  #early = [];
  #trace;
  #lost;

  /**
   * @param {string} url address of the component that it is made for
   * @param {import("./trace.js").Trace} trace
   * @param {(message: Message, code: number, why: string) => void} lost takes what no component
   *   has room for, or listens to
   */
  constructor(url, trace, lost) {
    this.name = `minibus:${url}`;
    this.#trace = trace;
    this.#lost = lost;
  }

  /**
   * @param {string} address `*`: everything that has no listener of its own
   * @param {Listener} listener
   * @param {string} [writer] name of the component that changes the table
   */
  listen(address, listener, writer = "loader") {
    this.#listeners.set(address, listener);
    this.#trace.row(this.name, "add", "listeners", address, listener.name, writer);
    for (const message of this.#early.splice(0)) this.#deliver(message);
  }

  /**
   * @param {string} address
   * @param {string} [writer]
   */
  unlisten(address, writer = "loader") {
    const listener = this.#listeners.get(address);
    if (!listener) return;
    this.#listeners.delete(address);
    this.#trace.row(this.name, "del", "listeners", address, listener.name, writer);
  }

  /**
   * @param {Message} message
   * @returns {boolean}
   */
  take(message) {
    if (this.#listeners.size) this.#deliver(message);
    else if (this.#early.length < constants.STUB_QUEUE) this.#early.push(message);
    else return false;
    return true;
  }

  /** @param {Message} message */
  #deliver(message) {
    const listener = this.#listeners.get(message.to) ?? this.#listeners.get("*");
    if (!listener) return this.#lost(message, CODES.NOT_FOUND, "target not found");
    const record = () => this.#trace.message(this.name, "deliver", message, { listener: listener.name });
    // The record of a delivery comes before what the stub records of sending it.
    if (listener.isStub) record();
    if (!listener.take(message)) this.#lost(message, CODES.UNAVAILABLE, "the receiver takes no more");
    else if (!listener.isStub) record();
  }
}

/**
 * Deploy a stub: make its sandbox, permit it to send, and register a listener for its status.
 *
 * @template {Listener} S
 * @param {MessageBus} bus
 * @param {import("./trace.js").Trace} trace
 * @param {{url: string, origin: Origin, agent: string, status: Listener}} terms
 * @param {(port: Port) => S} make
 */
export function deployStub(bus, trace, { url, origin, agent, status }, make) {
  const deployment = new Entity("stub_deployment", url);
  trace.step("loader", deployment.step("load"));
  bus.listen(statusOf(url), status, agent);
  bus.grant(url, url, origin);
  const miniBus = new MiniBus(url, trace, (...lost) => bus.lost(...lost));
  bus.listen(url, miniBus, agent);
  const clear = () => {
    bus.unlisten(url, miniBus, agent);
    bus.revoke(url, url);
    bus.unlisten(statusOf(url), status, agent);
  };
  try {
    const stub = make(new Port(bus, url));
    /** Deliver messages to it. */
    const open = () => {
      miniBus.listen("*", stub);
      trace.step("loader", deployment.step("loaded"));
    };
    return { stub, miniBus, open, clear };
  } catch (error) {
    trace.step("loader", deployment.step("load-failed", String(error)));
    clear();
    throw error;
  }
}

/** Listener with a queue of bounded size, for a handler that may be slow or asynchronous. */
export class Mailbox {
  #handle;
  #shares = new Shares(constants.MAILBOX);

  /**
   * @param {string} name
   * @param {(message: Message) => unknown} handle
   */
  constructor(name, handle) {
    this.name = name;
    this.#handle = handle;
    /** Messages that are being handled. */
    this.waiting = 0;
  }

  /** @param {Message} message */
  take(message) {
    // Senders of events need not wait for answers, so events may fill only a part of the queue.
    if (this.waiting >= (isInbox(message.to) ? constants.EVENTS_WAITING : constants.MAILBOX)) return false;
    const peer = messages.isRequest(message) ? messages.peerOf(message) : null;
    if (peer !== null && !this.#shares.enter(peer)) return false;
    this.waiting += 1;
    queueMicrotask(async () => {
      try {
        await this.#handle(message);
      } finally {
        if (peer !== null) this.#shares.leave(peer);
        this.waiting -= 1;
      }
    });
    return true;
  }
}

/**
 * @typedef {{isOurs: boolean, reply: Reply | null, session: string | null}} Waiter
 */

/**
 * @typedef {{message: Message, by: string, reply: Reply | null, awaited: string[],
 *   direct: string[], link: string | null}} Submitted
 */

/** @param {string} to */
const isOfChildren = (to) => to.includes("/children/");

/**
 * Return the data object that publishes changes at an address; null: it is no such address.
 *
 * @param {string} to
 */
const publisherOf = (to) => /^(.*)\/(changes|children\/[^/]+)$/s.exec(to)?.[1] ?? null;

/**
 * Return whether a message is sent to the children of an object by a creator, not by the object.
 *
 * @param {Message} message
 */
const isOfCreator = ({ type, from, to }) => {
  const object = isOfChildren(to) && type !== "response" ? publisherOf(to) : null;
  return object !== null && object !== from;
};

/**
 * Return the object to which a message from the object or a sync manager refers, if the message
 * orders an observer to stop observing, or to observe again; null: it is another message.
 *
 * @param {Message} message
 */
function takenOff({ type, from, body }) {
  if (type !== "subscribe" && type !== "unsubscribe") return null;
  if (from.endsWith("/subscription")) return from.slice(0, -"/subscription".length);
  const isOfPart = type === "subscribe" || schemeOf(from) === "hyperty-runtime";
  return !isOfPart && typeof body.resource === "string" ? body.resource : null;
}

/**
 * Return whether a message to the children of an object names a child that is not its sender's.
 *
 * @param {Message} message
 */
function isMisnamed({ type, from, to, body }) {
  const url = type === "response" ? null : /^(.*)\/children\/[^/]+$/s.exec(to)?.[1];
  if (!url || from === url) return false;
  const name = textOf(body.resource);
  const isOwn = name.startsWith(from) && /^#[1-9][0-9]{0,15}$/.test(name.slice(from.length));
  return !isOwn || !/^(create|update|delete)$/.test(type);
}

/**
 * Return whether a message acts on the session of the whole runtime at the node, whichever component
 * sends it: on the session's addresses, subscriptions and records, or the session itself.
 *
 * @param {Message} message
 */
const isOfSession = ({ type, to }) =>
  /^domain:\/\/msg-node\.[^/]+\/(session|sm|.*address-allocation)(\/|$)/.test(to) || (type !== "read" && /^domain:\/\/registry\./.test(to));

/**
 * Return whether a message came from outside by a stub, whose address is then the last in `via`.
 *
 * @param {Message} message
 * @param {string} by
 * @param {Origin} origin
 */
const isStamped = (message, by, origin) => origin !== "local" && messages.viaOf(message).at(-1) === by;

/**
 * Return a message with the established identity of its sender, instead of that in its body.
 *
 * @param {Message} message
 * @param {import("./message.js").SenderIdentity | null} own
 * @returns {Message}
 */
function identified(message, own) {
  const { identity: _, ...body } = message.body;
  return own ? { ...message, body, identity: own } : { ...message, body };
}

/** The router of one runtime: checks messages, delivers them to listeners, or sends them by stubs. */
export class MessageBus {
  /** @type {Map<string, Listener[]>} */
  #listeners = new Map();
  /** @type {Map<string, {origin: Origin, addresses: Set<string>}>} */
  #granted = new Map();
  /** @type {Transactions<Waiter>} */
  #open = new Transactions();
  #seen = new DeduplicationWindow();
  #answers = new AnswersKept();
  /** @type {Map<string, number>} */
  #load = new Map();
  /** @type {Submitted[]} */
  #queue = [];
  #isBusy = false;
  #isOver = false;
  #alarm;
  #tools;
  #trace;
  /** @type {Policy} */
  #policy;

  /**
   * @param {Tools} tools
   * @param {Policy | null} policy
   */
  constructor(tools, policy = null) {
    this.#tools = tools;
    this.#trace = tools.trace;
    this.#policy = policy ?? (() => null);
    this.#policyName = policy ? "page" : "default";
    this.#alarm = new Alarm(tools.clock, () => this.#tick());
    /** Finds the way of messages that have no listener here. @type {(message: Message) => Way} */
    this.resolve = () => ({ code: CODES.UNAVAILABLE, why: "there is no way out yet" });
    /**
     * Returns whether the peer of a link owns an address (I-B10).
     * @type {(link: string, address: string) => boolean}
     */
    this.isOfPeer = () => false;
    /**
     * Returns the link by which an observed object's changes may arrive; null: the node (I-D1).
     * @type {(object: string) => string | null}
     */
    this.eventsBy = () => null;
    /**
     * Is called when a peer has sent a message with the address of another sender.
     * @type {(by: string, address: string) => void}
     */
    this.onForged = () => {};
    /** Keeps messages in order that use the node and direct links. @type {Order | null} */
    this.order = null;
  }

  #policyName;

  /** @param {string} from */
  nextId(from) {
    return this.#tools.ids.next(from);
  }

  // ---- tables

  /**
   * Permit a component to send from an address and from all addresses below it.
   *
   * @param {string} owner
   * @param {string} address
   * @param {Origin} [origin]
   */
  grant(owner, address, origin = "local") {
    const grants = this.#granted.get(owner) ?? { origin, addresses: new Set() };
    this.#granted.set(owner, grants);
    if (!grants.addresses.has(address)) {
      this.#trace.row("bus", "add", "components", address, owner, grants.origin);
    }
    grants.addresses.add(address);
  }

  /**
   * @param {string} owner
   * @param {string} address
   */
  revoke(owner, address) {
    const grants = this.#granted.get(owner);
    if (!grants?.addresses.delete(address)) return;
    this.#trace.row("bus", "del", "components", address, owner, grants.origin);
    if (!grants.addresses.size) this.#granted.delete(owner);
  }

  /**
   * @param {string} address
   * @param {Listener} listener
   * @param {string} writer address of the component that changes the table
   */
  listen(address, listener, writer) {
    const listeners = this.#listeners.get(address) ?? [];
    if (listeners.includes(listener)) return;
    this.#listeners.set(address, [...listeners, listener]);
    this.#trace.row("bus", "add", "listeners", address, listener.name, writer);
  }

  /**
   * @param {string} address
   * @param {Listener} listener
   * @param {string} writer
   */
  unlisten(address, listener, writer) {
    const listeners = this.#listeners.get(address) ?? [];
    if (!listeners.includes(listener)) return;
    const rest = listeners.filter((one) => one !== listener);
    if (rest.length) this.#listeners.set(address, rest);
    else this.#listeners.delete(address);
    this.#trace.row("bus", "del", "listeners", address, listener.name, writer);
  }

  /** @param {string} address */
  isListenedTo(address) {
    return this.#listeners.has(address);
  }

  /**
   * Deliver messages to an address also to the listeners of a component.
   *
   * @param {string} address
   * @param {string} component
   * @param {string} writer
   */
  follow(address, component, writer) {
    for (const listener of this.#listeners.get(component) ?? []) this.listen(address, listener, writer);
  }

  /**
   * @param {string} address
   * @param {string} component
   * @param {string} writer
   */
  unfollow(address, component, writer) {
    for (const listener of this.#listeners.get(component) ?? []) this.unlisten(address, listener, writer);
  }

  // ---- in

  /**
   * Accept a message from a component, check it, and route it.
   *
   * @param {Message} message
   * @param {string} by address of the component
   * @param {{reply?: Reply | null, awaited?: string[], direct?: string[], link?: string | null}
   *   } [terms] as of `Port.request` and `Port.publish`
   */
  submit(message, by, { reply = null, awaited = [], direct = [], link = null } = {}) {
    this.#queue.push({ message, by, reply, awaited, direct, link });
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#admit(next);
    } finally {
      this.#isBusy = false;
      this.#alarm.set(this.#open.deadline);
    }
  }

  /** @param {string} by */
  #originOf(by) {
    for (let up = by; up.includes("://"); up = up.slice(0, up.lastIndexOf("/"))) {
      const grants = this.#granted.get(up);
      if (grants) return grants.origin;
    }
    return null;
  }

  /** @param {Submitted} submitted */
  #admit(submitted) {
    const { by } = submitted;
    if (this.#isOver) return this.#reject(submitted, CODES.GONE, "the runtime is closed");
    const { runtime, own } = this.#tools;
    const origin = this.#originOf(by) ?? "local";
    // A part of the runtime may speak for others, and says for whom.
    if (origin === "local" && !isBelow(by, runtime)) submitted.message = identified(submitted.message, own());
    const { message } = submitted;
    const isOut = origin === "local" || (isBelow(message.from, runtime) && !isStamped(message, by, origin));
    const isFromOutside = origin !== "local" && !isOut;
    if (isFromOutside && origin === "node-stub" && this.#isOvertaking(submitted)) return;
    const refusal = this.#objection(message, by, origin, isOut);
    const path = origin === "p2p-stub" ? by : "";
    if (isFromOutside && !refusal && this.order?.isLate(message, path)) return this.#rejectLate(submitted);
    if (isFromOutside && (!refusal || refusal.reason === DROPS.DENIED)) this.order?.came(message, path);
    if (refusal) return this.#deny(submitted, refusal);
    this.#trace.message("bus", "submit", message, { by });
    this.#trace.message("bus", "admit", message, { by });
    if (messages.isResponse(message)) {
      const isOfCopy = origin !== "local" && this.#isDecidedHere(message.from);
      return isOfCopy ? this.#drop(message, DROPS.UNMATCHED) : this.#answer(message);
    }
    const isByLink = origin === "p2p-stub" && isOfCreator(message);
    const givenUp = messages.keyGivenUp(message);
    if (givenUp && !this.#endGivenUp(givenUp, isOut)) return this.#drop(message, DROPS.UNMATCHED);
    // The reporter's end of an object answers for its children, nobody else.
    const isNotice = !isOut && !isByLink && isOfChildren(message.to) && !this.isLocal(message.to);
    if (messages.isRequest(message) && !isNotice) {
      const pair = `${message.from} ${message.to}`;
      const isCrowding = (this.#load.get(pair) ?? 0) >= constants.OPEN_REQUESTS;
      if (isCrowding && this.#listeners.has(message.to)) {
        const why = "too many requests to this receiver are open; wait for answers";
        return this.#reject(submitted, CODES.UNAVAILABLE, why, constants.RETRY_AFTER);
      }
      const session = origin === "local" ? null : by;
      const waiter = { isOurs: isOut, reply: submitted.reply, session };
      const now = this.#tools.clock.now();
      this.#trace.step("bus", this.#open.open(message, waiter, now, submitted.awaited));
      this.#load.set(pair, (this.#load.get(pair) ?? 0) + 1);
    }
    if (submitted.link !== null) return this.#goBy(message, submitted.link);
    if (isByLink) return this.#giveChild(message);
    const isHere = this.#listeners.has(message.to);
    this.#forward(message, isOut);
    // The listeners here may not be all.
    const { awaited, direct } = submitted;
    const isForOthers = awaited.length
      ? awaited.some((one) => one !== runtime && !direct.includes(one))
      : isOut && isOfChildren(message.to);
    if (isHere && isForOthers) this.#goOut(message);
  }

  /**
   * End a request that its requester gives up; return whether its receiver is to be told.
   *
   * @param {string} key of the request
   * @param {boolean} isOut
   */
  #endGivenUp(key, isOut) {
    const ended = this.#open.abandon(key);
    if (!ended) return !isOut || this.#open.hasEnded(key);
    this.#trace.step("bus", ended.step);
    this.#closed(ended.request);
    ended.waiter.reply?.(messages.refuse(ended.request, CODES.TIMEOUT, "it was given up"));
    return true;
  }

  /**
   * Refuse a message if a later one of the same sender has arrived before it by another route.
   *
   * @param {Submitted} submitted
   */
  #rejectLate(submitted) {
    const { message, by } = submitted;
    this.#trace.message("bus", "submit", message, { by });
    this.#trace.message("bus", "admit", message, { by });
    this.#drop(message, DROPS.OVERTAKEN);
    const why = "a later message of its sender came first, by another path";
    if (messages.isRequest(message)) this.#refuse(submitted, CODES.UNAVAILABLE, why);
  }

  /**
   * Delay a message of the node until older messages from links are delivered, if any are waiting.
   *
   * @param {Submitted} submitted
   */
  #isOvertaking(submitted) {
    const { length } = this.#queue;
    this.order?.arrives(submitted.message);
    const older = this.#queue.splice(length);
    if (older.length) this.#queue.unshift(...older, submitted);
    return older.length > 0;
  }

  /**
   * @param {Message} message
   * @param {string} by
   * @param {Origin} origin
   * @param {boolean} isOut
   * @returns {{reason: string, why: string, code: number | null} | null}
   */
  #objection(message, by, origin, isOut) {
    const { from, to } = message;
    const isAnswer = messages.isResponse(message);
    const isPart = isBelow(from, this.#tools.runtime);
    /** @type {(why: string) => {reason: string, why: string, code: number | null}} */
    const denied = (why) => ({ reason: DROPS.DENIED, why, code: CODES.FORBIDDEN });
    if (!this.#owns(message, by, origin)) {
      this.onForged(by, from);
      return { reason: DROPS.UNKNOWN_SOURCE, why: `${from} is not an address of ${by}`, code: CODES.UNAUTHENTICATED };
    }
    if (!this.#mayReport(message, by, origin)) {
      return { reason: DROPS.FORGED_STATUS, why: "only its owner reports a status", code: null };
    }
    const object = isAnswer ? null : publisherOf(to);
    if (origin === "p2p-stub" && object === from && isOfChildren(to) && this.eventsBy(object) !== by) {
      return denied(`nothing of ${from} is to come by this link`);
    }
    if (isMisnamed(message)) {
      return denied("not the child reporter: only its creator creates, changes and deletes a child");
    }
    if (origin === "local" && !isBelow(by, this.#tools.runtime) && isOfSession(message)) {
      return denied("only the parts of a runtime ask its node: what that does, it does for all hyperties");
    }
    if (this.#isForParts(message, origin)) {
      return denied("only the parts of a runtime command its stubs, and no stub asks them");
    }
    const via = messages.viaOf(message);
    if (via.length > constants.HOP_LIMIT || new Set(via).size !== via.length) {
      return { reason: DROPS.LOOP, why: "it is in a routing loop", code: null };
    }
    const isStatus = isPart && to === statusOf(from);
    // A stub is no part of the runtime (SC-23).
    const isOfParts = origin === "local" && isPart && isBelow(to, this.#tools.runtime);
    if (!isAnswer && !isStatus && !isOfParts) {
      const direction = isOut ? "out" : "in";
      const why = this.#judged(message, direction);
      const decision = why === null ? "permit" : "deny";
      const ruling = { direction, decision, policy: this.#policyName, version: 1, why: why ?? undefined };
      this.#trace.record("bus", { k: "authz", mid: messages.instanceId(message), ...ruling });
      if (why !== null) return denied(why);
    }
    if (isAnswer && origin === "local") return null;
    const transaction = isAnswer ? null : this.#open.find(message);
    if (this.#seen.isNew(message, this.#tools.clock.now()) && !transaction) return null;
    const before = transaction?.request ?? (isAnswer ? null : this.#answers.find(message)?.request);
    const isSame = !before || messages.sameRequest(before, message);
    const why = isSame ? "this request has been made before" : "another request had this id";
    return { reason: DROPS.DUPLICATE, why, code: isSame ? null : CODES.MALFORMED };
  }

  /**
   * @param {Message} message
   * @param {"in" | "out"} direction
   */
  #judged(message, direction) {
    try {
      return this.#policy(message, direction);
    } catch (error) {
      console.error("protofly: policy crashed", error);
      return "the policy of the runtime failed on it";
    }
  }

  /**
   * @param {Message} message
   * @param {string} by
   * @param {Origin} origin
   */
  #owns(message, by, origin) {
    const { from } = message;
    for (let up = isStamped(message, by, origin) ? "" : by; up.includes("://"); up = up.slice(0, up.lastIndexOf("/"))) {
      for (const address of this.#granted.get(up)?.addresses ?? []) {
        if (isBelow(from, address)) return true;
      }
    }
    if (origin === "local") return false;
    // Observers here and elsewhere answer from what all of them listen to (C-81).
    if (messages.isResponse(message) && (lastSegment(from) === "changes" || isOfChildren(from))) {
      // A peer answers for its own runtime only, and says so.
      const source = textOf(message.body.source);
      return origin === "node-stub" || !isStamped(message, by, origin) ||
        (source === runtimeOf(source) && this.isOfPeer(by, source));
    }
    if (this.isLocal(from)) return false;
    return origin === "node-stub" || this.isOfPeer(by, from);
  }

  /**
   * Return whether an address belongs to a component of this runtime.
   *
   * @param {string} address
   */
  isLocal(address) {
    if (isBelow(address, this.#tools.runtime)) return true;
    for (const { origin, addresses } of this.#granted.values()) {
      if (origin !== "local") continue;
      for (const own of addresses) if (isBelow(address, own)) return true;
    }
    return false;
  }

  /**
   * @param {Message} message
   * @param {string} by
   * @param {Origin} origin
   */
  #mayReport(message, by, origin) {
    const { from, to } = message;
    const part = lastSegment(to);
    if (origin === "p2p-stub" && !messages.isResponse(message)) {
      const isOfObject = part === "changes" && schemeOf(to) !== "hyperty-runtime";
      const object = takenOff(message) ?? (isOfObject ? publisherOf(to) : null);
      if (object !== null) return this.eventsBy(object) === by;
    }
    if (part === "status") return to === statusOf(from);
    if (part === "registration" && messages.isEvent(message)) {
      return origin === "node-stub" && from === registryOf(domainOf(to));
    }
    return true;
  }

  /**
   * Return whether a request may be made only by components of the runtime, and comes from others.
   *
   * @param {Message} message
   * @param {Origin} origin
   */
  #isForParts(message, origin) {
    if (!messages.isRequest(message)) return false;
    const { type, from, to } = message;
    const { runtime } = this.#tools;
    const isOwn = isBelow(from, runtime);
    if (isOwn && origin === "node-stub") return isBelow(to, runtime);
    const stub = this.#originOf(to) ?? "local";
    if (stub === "local" || (isOwn && origin === "local")) return false;
    // Of stubs of links, another runtime asks for a link.
    return stub === "node-stub" || type === "execute" || type === "subscribe";
  }

  /**
   * @param {Submitted} submitted
   * @param {{reason: string, why: string, code: number | null}} refusal
   */
  #deny(submitted, { reason, why, code }) {
    const { message, by } = submitted;
    this.#trace.message("bus", "submit", message, { by });
    if (reason === DROPS.DUPLICATE) this.#trace.message("bus", "admit", message, { by });
    else this.#trace.message("bus", "deny", message, { by, code: code ?? undefined, why });
    this.#drop(message, reason);
    const again = reason === DROPS.DUPLICATE && code === null ? this.#answers.find(message) : null;
    if (again && !messages.isResponse(message)) {
      const { response } = again;
      this.#trace.message("bus", "submit", response, { by: response.from });
      this.#trace.message("bus", "admit", response, { by: response.from });
      this.#goBack(response, by);
    } else if (messages.isRequest(message) && code !== null) this.#reject(submitted, code, why);
    else if (submitted.reply) submitted.reply(messages.refuse(message, code ?? CODES.CONFLICT, why));
    // A change of a foreign child is refused, although it is an event (SC-36).
    else if (isMisnamed(message) && this.#originOf(by) === "local") this.#refuse(submitted, CODES.FORBIDDEN, why);
  }

  /**
   * Answer the component that has submitted a request, for any `from`.
   *
   * @param {Submitted} submitted
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   */
  #reject(submitted, code, why, retryAfter = null) {
    const { message } = submitted;
    if (messages.isRequest(message)) this.#refuse(submitted, code, why, retryAfter);
    else this.#drop(message, DROPS.NO_TARGET);
  }

  /**
   * @param {Submitted} submitted
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   */
  #refuse({ message, by, reply }, code, why, retryAfter = null) {
    const response = messages.refuse(message, code, why, retryAfter);
    this.#synthesised(response, message);
    this.#toWaiter(response, { isOurs: true, reply, session: null }, by);
  }

  /**
   * Return whether requests about these children are answered by an object of this runtime.
   *
   * Observers elsewhere get copies; if a copy cannot be delivered, the request is not refused.
   *
   * @param {string} address
   */
  #isDecidedHere(address) {
    return isOfChildren(address) && this.isLocal(address);
  }

  // ---- answers

  /** @param {Message} response */
  #answer(response) {
    const { transaction, drop, step, isLast } = this.#open.answered(response, this.#tools.clock.now());
    if (!transaction) return this.#drop(response, drop ?? DROPS.UNMATCHED);
    if (step) this.#trace.step("bus", step);
    if (isLast) {
      this.#closed(transaction.request, messages.isSuccess(response));
      if (!transaction.waiter.isOurs) this.#answers.keep(transaction.request, response);
    }
    this.#toWaiter(response, transaction.waiter);
  }

  /**
   * @param {Message} request
   * @param {boolean} [isReached] whether its receiver has answered
   */
  #closed(request, isReached = false) {
    this.order?.settled(request, isReached);
    const pair = `${request.from} ${request.to}`;
    const left = (this.#load.get(pair) ?? 1) - 1;
    if (left) this.#load.set(pair, left);
    else this.#load.delete(pair);
  }

  /**
   * @param {Message} response
   * @param {Waiter} waiter
   * @param {string} [own] address of the component here that waits
   */
  #toWaiter(response, { isOurs, reply, session }, own = response.to) {
    if (reply) {
      this.#trace.message("bus", "callback", response);
      reply(response);
    } else if (isOurs) {
      if (!this.#give(response, own)) this.#drop(response, DROPS.NO_TARGET);
    } else this.#goBack(response, session ?? "");
  }

  /**
   * Send an answer by the stub that brought the request, if the stub still exists.
   *
   * @param {Message} response
   * @param {string} stub
   */
  #goBack(response, stub) {
    if (!this.#give(response, stub)) this.#forward(response, true);
  }

  // ---- out

  /**
   * @param {Message} message
   * @param {boolean} isOut
   * @param {boolean} [isBack]
   */
  #forward(message, isOut, isBack = false) {
    const { to } = message;
    if (this.#listeners.has(to)) this.#giveHere(message, to);
    else if (!isOut || isBelow(to, this.#tools.runtime)) {
      this.#end(message, CODES.NOT_FOUND, "target not found");
    } else this.#goOut(message, isBack);
  }

  /**
   * Give a creator's message about a child, which came by a link, to the object's sync manager,
   * which checks the message and reports it to the other observers.
   *
   * @param {Message} message
   */
  #giveChild(message) {
    const { to } = message;
    if (this.isLocal(to) && this.#listeners.has(to)) this.#giveHere(message, publisherOf(to) ?? "");
    else this.#end(message, CODES.UNAVAILABLE, "the object is not reported here", constants.RETRY_AFTER);
  }

  /**
   * @param {Message} message
   * @param {string} address whose listeners get it
   */
  #giveHere(message, address) {
    if (this.#give(message, address)) return;
    this.#end(message, CODES.UNAVAILABLE, "the receiver takes no more", constants.RETRY_AFTER);
  }

  /**
   * @param {Message} message
   * @param {boolean} [isBack] whether a stub has handed it back
   */
  #goOut(message, isBack = false) {
    const way = this.resolve(message);
    if ("stub" in way) this.#goBy(message, way.stub, isBack);
    else this.#endCopy(message, way.code, way.why, way.retryAfter ?? null);
  }

  /**
   * @param {Message} message
   * @param {string} stub
   * @param {boolean} [isBack]
   */
  #goBy(message, stub, isBack = false) {
    this.order?.sent(message, this.#originOf(stub) === "node-stub", isBack);
    if (!this.#give(message, stub)) this.#endCopy(message, CODES.UNAVAILABLE, "the stub is gone");
  }

  /**
   * @param {Message} message
   * @param {string} address whose listeners get it
   */
  #give(message, address) {
    let isTaken = false;
    for (const listener of this.#listeners.get(address) ?? []) {
      // Written before it is taken, as a MiniBUS writes that it has delivered it.
      const isMiniBus = listener instanceof MiniBus;
      if (isMiniBus) this.#trace.message("bus", "deliver", message, { listener: listener.name });
      if (!listener.take(message)) continue;
      isTaken = true;
      if (!isMiniBus) this.#trace.message("bus", "deliver", message, { listener: listener.name });
    }
    return isTaken;
  }

  /**
   * End a copy that cannot be sent, unless this runtime answers the request itself.
   *
   * @param {Message} message
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   */
  #endCopy(message, code, why, retryAfter = null) {
    if (this.#isDecidedHere(message.to)) this.#dropUnsent(message, DROPS.NO_TARGET);
    else this.#end(message, code, why, retryAfter);
  }

  /**
   * Stop the routing of a message: answer a request, drop any other message.
   *
   * @param {Message} message
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   */
  #end(message, code, why, retryAfter = null) {
    const ended = messages.isRequest(message) ? this.#open.giveUp(message, `${code} ${why}`) : null;
    if (ended) this.#answerEnded(ended, code, why, retryAfter);
    else this.#dropUnsent(message, retryAfter === null ? DROPS.NO_TARGET : DROPS.OVERFLOW);
  }

  /**
   * Answer a request whose transaction has ended.
   *
   * @param {{request: Message, waiter: Waiter, step: import("./machine.js").Step}} ended
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   */
  #answerEnded({ request, waiter, step }, code, why, retryAfter = null) {
    this.#trace.step("bus", step);
    this.#closed(request);
    const response = messages.refuse(request, code, why, retryAfter);
    this.#synthesised(response, request);
    this.#toWaiter(response, waiter);
  }

  /**
   * End requests that got no answer in time; requests of other runtimes end there themselves.
   *
   * @param {{request: Message, waiter: Waiter, step: import("./machine.js").Step}[]} over
   * @param {number} code
   * @param {string} why
   */
  #endAll(over, code, why) {
    for (const ended of over) {
      if (ended.waiter.isOurs) this.#answerEnded(ended, code, why);
      else {
        this.#trace.step("bus", ended.step);
        this.#closed(ended.request);
      }
    }
  }

  /**
   * End a message that was delivered to a component which cannot handle it any more.
   *
   * @param {Message} message
   * @param {number} code
   * @param {string} why
   */
  lost(message, code, why) {
    this.#endCopy(message, code, why, code === CODES.UNAVAILABLE ? constants.RETRY_AFTER : null);
  }

  /**
   * Route messages again that a stub could not deliver.
   *
   * @param {Message[]} returned without the stamp of the stub in `via`
   */
  handBack(returned) {
    for (const message of returned) {
      // Publications were sent by their other routes; an observer that lost its link reads again.
      const isPublished = messages.isEvent(message) && isBelow(message.to, message.from);
      const isWanted = !isPublished && (!messages.isRequest(message) || this.#open.find(message));
      if (isWanted) this.#forward(message, true, true);
      else this.#dropUnsent(message, DROPS.NO_TARGET);
    }
  }

  /**
   * Deliver a message that came to one component of this runtime to another one.
   *
   * @param {Message} message
   * @param {string} component
   */
  handOn(message, component) {
    if (!this.#give(message, component)) this.lost(message, CODES.UNAVAILABLE, "the receiver is gone");
  }

  /**
   * @param {Message} response
   * @param {Message} request
   */
  #synthesised(response, request) {
    this.#trace.message("bus", "synth", response, { ref: messages.instanceId(request) });
  }

  /**
   * @param {Message} message
   * @param {string} reason
   */
  #drop(message, reason) {
    this.#tools.counters.drop(reason, "bus", message);
    this.#trace.message("bus", "drop", message, { reason });
  }

  /**
   * @param {Message} message that goes nowhere
   * @param {string} reason
   */
  #dropUnsent(message, reason) {
    this.order?.settled(message);
    this.#drop(message, reason);
  }

  #tick() {
    this.#endAll(this.#open.overdue(this.#tools.clock.now()), CODES.TIMEOUT, "Request Timeout");
    this.#alarm.set(this.#open.deadline);
  }

  /** Answer all open requests with a refusal; refuse later messages. */
  close() {
    this.#isOver = true;
    this.#endAll(this.#open.giveUpAll("the runtime is closed"), CODES.GONE, "the runtime is closed");
    this.#alarm.set(Infinity);
  }
}
