/**
 * Control of the direct links of a runtime, by the table of links in `links.js`. The code here reads
 * registration records, subscribes at the node, deploys stubs and gives them orders. It decides by
 * which link a message is sent, and whether a peer owns the senders of the messages it sends.
 */

import { domainOf, isBackend, isBelow, registryOf, runtimeOf, schemeOf, statusOf, subscriptionManager } from "./address.js";
import { deployStub } from "./bus.js";
import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { Host } from "./host.js";
import { isObject, memoryOf, numberOf, textOf } from "./json.js";
import { LinkTable, planOf } from "./links.js";
import { Entity } from "./machine.js";
import { codeOf, isByNode, isRequest, isResponse, isSuccess, refuse, replyTo } from "./message.js";
import { trim } from "./transactions.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {import("./links.js").Plan} Plan */

/**
 * What a stub of direct links has: its address, its port, and what brings messages of a peer.
 * `arrived` takes them in order; their `via` has the stub's stamp already.
 * @typedef {{url: string, port: import("./bus.js").Port, plan: Plan | null,
 *   arrived: (message: Message, link: string) => void}} StubContext
 */

/**
 * A stub of direct links. It is a listener: at its own address it gets commands (M-11, M-12) and
 * the handler the listeners of its links (M-05); at the address of a link, what is to be sent.
 * @typedef {import("./bus.js").Listener & {close: () => void,
 *   send?: (message: Message, link: string) => boolean}} LinkStub
 */

/**
 * Functions that make stubs of direct links, and the class for peers' lists of addresses. `descriptor` is
 * the catalogue address of the requester that others load to reach the handler.
 * @typedef {{handler: ((context: StubContext) => LinkStub) | null, descriptor: string,
 *   requester: (context: StubContext) => LinkStub, Lists: typeof import("./p2p/lists.js").Lists}} LinkStubs
 */

/** Number of the first negotiation of a link, which an order to yield or resume means. */
const FIRST = 1;

/**
 * The record of an entity; null: there is none. `isLeft`: it lives there no more, as its runtime says.
 * @typedef {{record: JsonObject | null, until: number, isLeft?: boolean}} Known
 */

/** @param {Message} answer */
const refusalIn = (answer) => (isSuccess(answer) ? null : `${codeOf(answer)}`);

/** The direct links of one runtime. */
export class Links {
  #tools;
  #bus;
  #port;
  #agent;
  #stubs;
  #routesChanged;
  #host;
  /** @type {Map<string, {stub: LinkStub, miniBus: import("./bus.js").MiniBus, clear: () => void}>} */
  #deployed = new Map();
  /** Addresses of each link's peer, by their records. @type {Map<string, Set<string>>} */
  #owned = new Map();
  /** What listens at each link of a handler. @type {Map<string, import("./bus.js").Listener>} */
  #listening = new Map();
  /** The runtime at the other end of each link. @type {Map<string, string>} */
  #peers = new Map();
  /** Times at which a peer used a forged sender, by link. @type {Map<string, number[]>} */
  #forgeries = new Map();
  /** @type {Map<string, Entity>} */
  #jobs = new Map();
  /** @type {Map<string, Known>} */
  #records = new Map();
  /** @type {Map<string, Promise<JsonObject | null>>} */
  #reading = new Map();
  /** Messages from each link that wait until their senders' records are read.
   * @type {Map<string, {waiting: Message[], bytes: number}>} */
  #held = new Map();
  /** Questions of handlers that wait until our own request yields. @type {Message[]} */
  #asked = [];
  #status;

  /**
   * @param {import("./bus.js").Tools} tools
   * @param {import("./bus.js").MessageBus} bus
   * @param {{port: import("./bus.js").Port, agent: import("./bus.js").Port, listed: () => string[], routesChanged: () => void}} registry
   * @param {LinkStubs} stubs
   */
  constructor(tools, bus, registry, stubs) {
    const { port, agent, routesChanged } = registry;
    this.#tools = tools;
    this.#bus = bus;
    this.#port = port;
    this.#agent = agent;
    this.#stubs = stubs;
    this.#routesChanged = routesChanged;
    const make = (/** @type {import("./links.js").TablePort} */ port) => new LinkTable(tools.runtime, port);
    this.#host = new Host(tools.clock, this.#portOfTable(), make, () => {
      this.#settle();
      this.#decide();
    });
    this.lists = new stubs.Lists(tools, bus, this, registry);
    this.#status = {
      name: "registry",
      /** @param {Message} message */
      take: (message) => this.#seen(message),
    };
    bus.isOfPeer = (link, address) => this.#isOfPeer(link, address);
    bus.onForged = (link, address) => this.#forged(link, address);
  }

  get #now() {
    return this.#tools.clock.now();
  }

  get #table() {
    return this.#host.core;
  }

  /** The entries of the table; not to be changed. */
  get entries() {
    return this.#table.entries;
  }

  #isClosed = false;

  /** Address of the handler stub; null: there is none yet. */
  handler = /** @type {string | null} */ (null);

  /** Deploy the handler stub, once the node has a path to it. */
  async openHandler() {
    const { handler } = this.#stubs;
    if (!handler) return null;
    const url = `${this.#tools.runtime}/p2phandler/1`;
    this.#deploy(url, null, handler);
    const paths = subscriptionManager(this.#tools.domain);
    const answer = await this.#agent.ask("subscribe", paths, { resources: [url], source: url });
    if (!isSuccess(answer)) {
      this.#undeploy(url);
      return null;
    }
    this.handler = url;
    return { p2pHandler: url, p2pRequester: this.#stubs.descriptor };
  }

  // ---- ways

  /**
   * Return the live link for a message; without one, begin to look for one, if it may have one.
   *
   * @param {Message} message
   * @returns {string | null}
   */
  wayOf(message) {
    const { to } = message;
    if (isBackend(to)) return null;
    const object = /^(.*)\/children\/[^/]+$/s.exec(to)?.[1];
    if (object !== undefined) return this.childrenBy(object);
    if (isByNode(message)) return null;
    const entity = runtimeOf(to);
    const live = this.#table.liveLink(entity);
    if (live) return live;
    if (!isRequest(message)) return null;
    void this.#seek(entity);
    // What its record says may be known.
    return this.#table.liveLink(entity);
  }

  /**
   * Return the link by which children of an object are written; null: by the node.
   *
   * @type {(object: string) => string | null}
   */
  childrenBy = () => null;

  /** Is called when a link came or went. */
  onChange = () => {};

  /** @param {string} entity */
  linkTo(entity) {
    return this.#table.liveLink(entity);
  }

  /**
   * Set up a link to the runtime of an entity, if that is possible.
   *
   * @param {string} entity
   */
  want(entity) {
    void this.#seek(entity);
  }

  /**
   * Return whether a component of a link's remote runtime may act for an entity there.
   *
   * @param {string} link
   * @param {string} part
   * @param {string} entity
   */
  async speaksFor(link, part, entity) {
    const remote = this.#peers.get(link);
    if (remote === undefined || !(isBelow(part, remote) || part === entity)) return false;
    if (this.#known(runtimeOf(entity)) === undefined) await this.#read(runtimeOf(entity));
    return this.#isOfPeer(link, entity);
  }

  /** @param {string} entity */
  async #seek(entity) {
    const key = `link|${entity}`;
    if (this.#isClosed || this.#jobs.has(key) || isBelow(entity, this.#tools.runtime)) return;
    const job = new Entity("resolve_job", key);
    this.#jobs.set(key, job);
    const { trace } = this.#tools;
    trace.step("registry", job.step("asked"));
    let record = this.#records.get(entity)?.isLeft ? undefined : this.#known(entity);
    if (record === undefined) {
      trace.step("registry", job.step("queried"));
      record = await this.#read(entity);
    }
    if (this.#jobs.get(key) === job) this.#informed(entity, job, record);
  }

  /**
   * @param {string} entity
   * @param {Entity} job
   * @param {JsonObject | null} record
   */
  #informed(entity, job, record) {
    const plan = record && planOf(record);
    const remote = record?.runtime;
    const isRemote = typeof remote === "string" && remote !== this.#tools.runtime;
    this.#host.run((table, now) => {
      const isBegun = plan !== null && isRemote && table.plan(plan, now);
      const hasEntry = isRemote && table.entries.some((entry) => entry.remote === remote);
      if (!hasEntry) this.#step(job, "none", "no link to where it lives");
      else this.#step(job, isBegun ? "deploy" : "attach");
    });
    if (isRemote) this.#bind(entity, remote);
  }

  /**
   * @param {string} entity
   * @param {string} remote
   */
  #bind(entity, remote) {
    this.#host.run((table) => table.bind(entity, remote));
  }

  /**
   * @param {Entity} job
   * @param {string} trigger
   * @param {string} [why]
   */
  #step(job, trigger, why = "") {
    this.#tools.trace.step("registry", job.step(trigger, why));
    if (job.mayEnd) this.#jobs.delete(job.key);
  }

  /** End the searches whose link is live, or will not be. */
  #settle() {
    for (const [key, job] of [...this.#jobs]) {
      if (!job.allows("found")) continue;
      const entity = key.slice("link|".length);
      if (this.#table.liveLink(entity)) this.#step(job, "found");
      else if (!this.#table.entryOf(entity)) this.#step(job, "none", "the link is gone");
    }
  }

  // ---- records

  /**
   * Return the cached record of an entity; null if it has no record, undefined if unknown.
   *
   * @param {string} entity
   */
  #known(entity) {
    const known = this.#records.get(entity);
    return known && this.#now < known.until ? known.record : undefined;
  }

  /**
   * Discard the cached record of an entity, which has changed.
   *
   * @param {string} entity
   */
  forget(entity) {
    this.#records.delete(entity);
    this.#host.run((table) => table.unbind(entity));
  }

  /**
   * @param {string} entity
   * @param {string} remote
   */
  knows(entity, remote) {
    return this.#known(entity)?.runtime === remote;
  }

  /**
   * Read the record of an entity that a peer's list names, unless the cached record agrees.
   *
   * @param {string} entity
   * @param {string} remote the runtime that says that it lives there
   */
  async learn(entity, remote) {
    const record = this.knows(entity, remote) ? this.#known(entity) : await this.#read(entity);
    const runtime = record?.runtime;
    if (typeof runtime === "string") this.#bind(entity, runtime);
  }

  /**
   * Stop using a link for an entity, after its runtime has removed the entity from its list.
   *
   * @param {string} entity
   * @param {string} remote
   */
  left(entity, remote) {
    const known = this.#records.get(entity);
    if (known?.record?.runtime === remote) known.isLeft = true;
    if (this.#table.entryOf(entity)?.remote === remote) this.#host.run((table) => table.unbind(entity));
  }

  /**
   * @param {string} entity
   * @returns {Promise<JsonObject | null>}
   */
  #read(entity) {
    const pending = this.#reading.get(entity);
    if (pending) return pending;
    const reading = this.#port.ask("read", registryOf(domainOf(entity)), { resource: entity }).then((answer) => {
      this.#reading.delete(entity);
      const { value } = answer.body;
      const record = codeOf(answer) === CODES.OK && isObject(value) && value.url === entity ? value : null;
      const life = record ? Math.min(numberOf(record.expires) || 1, constants.REGISTRATION_EXPIRES) : constants.NEGATIVE_CACHE;
      this.#records.set(entity, { record, until: this.#now + life });
      trim(this.#records, constants.OWNERS_KEPT);
      return record;
    });
    this.#reading.set(entity, reading);
    return reading;
  }

  /**
   * Return whether the peer of a link owns an address, by the address's record.
   *
   * @param {string} link
   * @param {string} address
   */
  #isOfPeer(link, address) {
    const remote = this.#peers.get(link);
    if (remote === undefined) return false;
    const entity = isBelow(address, remote) ? remote : runtimeOf(address);
    if (entity !== remote && this.#known(entity)?.runtime !== remote) return false;
    const owned = this.#owned.get(link) ?? new Set();
    this.#owned.set(link, owned);
    if (!owned.has(entity)) this.#tools.trace.row("bus", "add", "components", entity, link, "p2p-stub");
    owned.add(entity);
    return true;
  }

  /**
   * Count a message with a forged sender; too many of them end the link.
   *
   * @param {string} link
   * @param {string} address
   */
  #forged(link, address) {
    const isForeign = isBackend(address) || schemeOf(address) === "hyperty-runtime" || this.#bus.isLocal(address);
    if (!isForeign || !this.#peers.has(link)) return;
    const now = this.#now;
    const times = (this.#forgeries.get(link) ?? []).filter((at) => now - at < constants.ERROR_WINDOW);
    this.#forgeries.set(link, [...times, now]);
    // The message that ends a link is refused first.
    if (times.length + 1 >= constants.FORGERIES) queueMicrotask(() => this.#host.run((table, moment) => table.forged(link, moment)));
  }

  /**
   * Accept a message from a link when its sender's record is read, in the order of the link.
   *
   * @param {Message} message
   * @param {string} link
   */
  #arrived(message, link) {
    const held = this.#held.get(link);
    if (!held && !this.#waits(message, link)) return this.#bus.submit(message, link);
    const bytes = memoryOf(message);
    const isFull = held && (held.waiting.length >= constants.HELD_MESSAGES || held.bytes + bytes > constants.HELD_BYTES);
    if (isFull) return this.#tools.counters.drop(DROPS.OVERFLOW, link, message);
    if (held) {
      held.waiting.push(message);
      held.bytes += bytes;
    } else {
      this.#held.set(link, { waiting: [message], bytes });
      void this.#prove(link);
    }
  }

  /**
   * @param {Message} message
   * @param {string} link
   */
  #waits({ from }, link) {
    const isPart = isBelow(from, this.#peers.get(link) ?? "") || isBelow(from, this.#tools.runtime);
    return !isPart && this.#known(runtimeOf(from)) === undefined;
  }

  /** @param {string} link */
  async #prove(link) {
    const { clock } = this.#tools;
    const held = this.#held.get(link) ?? { waiting: [], bytes: 0 };
    while (held.waiting.length) {
      const [message] = held.waiting;
      if (this.#waits(message, link)) {
        let cancel = () => {};
        const late = new Promise((resolve) => (cancel = clock.at(clock.now() + constants.PROOF_TIMEOUT, () => resolve(null))));
        await Promise.race([this.#read(runtimeOf(message.from)), late]);
        cancel();
      }
      held.waiting.shift();
      held.bytes -= memoryOf(message);
      this.#bus.submit(message, link);
    }
    this.#held.delete(link);
  }

  // ---- the table

  /**
   * Take a status event of a stub of direct links.
   *
   * @param {Message} message
   */
  #seen({ from, body }) {
    const { resource, value } = body;
    if (typeof resource !== "string" || typeof value !== "string") return true;
    const link = typeof body.link === "string" ? body.link : null;
    this.#host.run((table, now) => table.status({ stub: from, link, resource, value }, now));
    return true;
  }

  /**
   * Answer a stub's question about its link (P2P-18), or process a message of another registry.
   *
   * @param {Message} request
   */
  asked(request) {
    const { type } = request;
    if (isResponse(request)) return;
    if (!isRequest(request) || type === "subscribe" || type === "unsubscribe") return this.lists.take(request);
    if (!isBelow(request.from, this.#tools.runtime)) {
      // A row says who lives where, and by which link that is reached.
      return this.#port.post(refuse(request, CODES.FORBIDDEN, "a registry answers the parts of its own runtime"));
    }
    if (request.type === "delete") {
      // A link has ended for good (I-P19).
      this.#port.post(replyTo(request, CODES.OK));
      return this.#host.run((table, now) => table.over(request.from, textOf(request.body.resource), now));
    }
    if (request.type !== "read") {
      return this.#port.post(refuse(request, CODES.MALFORMED, "the registry can only be read"));
    }
    this.#asked.push(request);
    this.#decide();
  }

  #decide() {
    for (const request of this.#asked.splice(0)) {
      const { resource } = request.body;
      const entry = typeof resource === "string" ? this.#table.row(resource, request.from) : null;
      if (!entry) this.#port.post(refuse(request, CODES.NOT_FOUND, "no link leads there"));
      else if (entry.isHeld(request.from)) this.#asked.push(request);
      else {
        const { remote, role, status, url, link } = entry;
        const value = { remote, role, status, url, link, entities: [...entry.entities].sort() };
        this.#port.post(replyTo(request, CODES.OK, { value }));
      }
    }
  }

  /** @returns {import("./links.js").TablePort} */
  #portOfTable() {
    const { trace, domain } = this.#tools;
    const paths = subscriptionManager(domain);
    /** @type {(stub: string, method: "yield" | "resume", remote: string) => void} */
    const order = (stub, method, remote) =>
      void this.#order(stub, { method, params: [remote], link: stub, negotiation: FIRST }, method === "resume");
    return {
      step: (step) => trace.step("registry", step),
      row: ({ op, key, val }) => trace.row("registry", op, "p2p", key, val, "registry"),
      addPeer: (link, remote) => this.#peers.set(link, remote),
      removePeer: (link) => {
        for (const entity of this.#owned.get(link) ?? []) {
          trace.row("bus", "del", "components", entity, link, "p2p-stub");
        }
        for (const table of [this.#owned, this.#forgeries, this.#peers]) table.delete(link);
      },
      setPath: (url) => void this.#port.ask("subscribe", paths, { resources: [url], source: url }).then((answer) =>
        this.#host.run((table, now) => table.pathSet(url, refusalIn(answer), now))),
      removePath: (url) => void this.#port.ask("unsubscribe", paths, { resources: [url], source: url }),
      deploy: (url, plan) => this.#deploy(url, plan, this.#stubs.requester),
      undeploy: (url) => this.#undeploy(url),
      connect: (stub, handler) => void this.#order(stub, { method: "connect", params: [handler] }, true),
      disconnect: (stub, remote, link) => void this.#order(stub, { method: "disconnect", params: [remote], link }),
      suspend: (stub, remote) => order(stub, "yield", remote),
      resume: (stub, remote) => order(stub, "resume", remote),
      registerLink: (link, stub) => void this.#register(link, stub),
      unregisterLink: (link) => this.#unregister(link),
      linkUp: (remote, link) => this.lists.linkIs({ remote, link }),
      linkDown: (remote) => this.lists.linkIs({ remote, link: null }),
      linkGone: (remote) => {
        this.lists.linkIs({ remote, link: null, isOver: true });
        // What their records said may not be so any more.
        for (const [entity, { record }] of this.#records) {
          if (record?.runtime === remote) this.#records.delete(entity);
        }
      },
      forgetRoutes: () => {
        this.#routesChanged();
        queueMicrotask(() => this.onChange());
      },
    };
  }

  /**
   * Send an order to a stub; a stub that refuses an important order is removed.
   *
   * @param {string} stub
   * @param {JsonObject} body
   * @param {boolean} [isNeeded]
   */
  async #order(stub, body, isNeeded = false) {
    const answer = await this.#port.ask("execute", stub, body);
    if (isNeeded && !isSuccess(answer)) this.#host.run((table, now) => table.gone(stub, now));
  }

  /**
   * Set the listeners of a handler's link: the bus's, then the handler's own (I-P17).
   *
   * @param {string} link
   * @param {string} handler
   */
  async #register(link, handler) {
    const deployed = this.#deployed.get(handler);
    if (deployed) {
      const { stub, miniBus } = deployed;
      const listener = {
        name: miniBus.name,
        /** @param {Message} message */
        take: (message) => (stub.send ? stub.send(message, link) : miniBus.take(message)),
      };
      this.#listening.set(link, listener);
      this.#bus.listen(link, listener, this.#port.url);
    }
    const answer = await this.#port.ask("subscribe", handler, { resources: [link], source: handler });
    const refusal = refusalIn(answer);
    if (deployed && refusal === null) deployed.miniBus.listen(link, deployed.stub);
    this.#host.run((table, now) => table.registered(link, refusal, now));
  }

  /** @param {string} link */
  #unregister(link) {
    const listener = this.#listening.get(link);
    this.#listening.delete(link);
    if (listener) this.#bus.unlisten(link, listener, this.#port.url);
    for (const { miniBus } of this.#deployed.values()) miniBus.unlisten(link);
  }

  // ---- stubs

  /**
   * @param {string} url
   * @param {Plan | null} plan
   * @param {(context: StubContext) => LinkStub} make
   */
  #deploy(url, plan, make) {
    const terms = { url, origin: /** @type {const} */ ("p2p-stub"), agent: this.#agent.url, status: this.#status };
    const arrived = this.#arrived.bind(this);
    try {
      const { open, ...deployed } = deployStub(this.#bus, this.#tools.trace, terms, (port) => make({ url, port, plan, arrived }));
      this.#deployed.set(url, deployed);
      open();
    } catch {
      this.#host.run((table, now) => table.gone(url, now));
    }
  }

  /** @param {string} url */
  #undeploy(url) {
    const deployed = this.#deployed.get(url);
    if (!deployed) return;
    this.#deployed.delete(url);
    // The stub that has just reported its end still has to give up its objects.
    queueMicrotask(() => {
      deployed.stub.close();
      deployed.clear();
    });
  }

  /** Repeat the subscriptions of all stubs, after the node has lost them. */
  renew() {
    const paths = subscriptionManager(this.#tools.domain);
    return Promise.all([...this.#deployed.keys()].map((url) => {
      const port = url === this.handler ? this.#agent : this.#port;
      return port.ask("subscribe", paths, { resources: [url], source: url });
    }));
  }

  /** End all links and searches for links, and set up no new ones. */
  async close() {
    this.#isClosed = true;
    for (const job of [...this.#jobs.values()]) this.#step(job, "none", "the runtime ends");
    // A link is disconnected first, then its row and its listener go.
    const entries = this.#table.entries.flatMap((entry) => entry.ends);
    await Promise.all(
      entries.map(({ stub, remote, link }) =>
        this.#order(stub, { method: "disconnect", params: [remote], link })),
    );
    this.#host.run((table) => table.close());
    for (const url of [...this.#deployed.keys()]) this.#undeploy(url);
  }
}
