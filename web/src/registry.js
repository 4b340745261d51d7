/**
 * The registry of a runtime: it finds the route of each message, controls the stub of the node and
 * the direct links, and keeps the runtime's records in the domain registry alive.
 */

import * as urls from "./address.js";
import { deployStub } from "./bus.js";
import { Alarm, sleep } from "./clock.js";
import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { BadMessageError, isObject, textOf } from "./json.js";
import { Shares } from "./limits.js";
import { Entity } from "./machine.js";
import { address, codeOf, isByNode, isSuccess, reasonIn, refuse, replyTo } from "./message.js";
import { NodeStub } from "./node.js";
import { trim } from "./transactions.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {import("./bus.js").Way} Way */

/** The status of a record; null: there is no record. @typedef {(status: string | null) => void} Report */

/**
 * A hyperty that may follow records: what tells it of each, and what ends that, by address.
 * @typedef {{tell: (url: string, status: string | null) => void,
 *   followed: Map<string, Promise<() => Promise<void>>>}} Follower
 */

/** Maximum records that hyperties follow by their own requests; each may use half of the free ones. */
const FOLLOWED = Math.floor(constants.MAX_SUBSCRIPTIONS / 4);

const REGISTRATION = urls.registrationOf("");

/** Number of addresses whose route is cached. */
const ROUTES = 1024;

/** The error for a refused request of the runtime itself; `code` is the reply code. */
export class RefusedError extends Error {
  /**
   * @param {string} what
   * @param {Message} answer
   */
  constructor(what, answer) {
    super(`${what}: the answer was ${codeOf(answer)} ${reasonIn(answer)}`.trim());
    this.name = "RefusedError";
    this.code = codeOf(answer);
    this.reason = reasonIn(answer);
    this.retryAfter = typeof answer.body.retryAfter === "number" ? answer.body.retryAfter : null;
  }
}

/**
 * Return a successful answer; throw an error for a refusal.
 *
 * @param {string} what what was asked for, as the beginning of a sentence
 * @param {Message} answer
 */
export function granted(what, answer) {
  if (!isSuccess(answer)) throw new RefusedError(what, answer);
  return answer;
}

/**
 * @typedef {object} NodeOptions how the node of the domain is reached
 * @property {string} nodeUrl
 * @property {(() => Promise<string | null>) | null} credentials
 * @property {import("./keys.js").RuntimeKey | null} key
 * @property {string | null} session
 * @property {(url: string, protocol: string) => import("./node.js").Socket} connect
 * @property {boolean} isSingleToken
 * @property {(reason: string) => void} onEnd
 * @property {(said: Partial<import("./node.js").Said>) => void} onSaid
 */

/** A record of the domain registry that this runtime keeps alive. */
class Kept {
  /**
   * @param {JsonObject} record
   * @param {number} due
   */
  constructor(record, due) {
    this.record = record;
    this.due = due;
  }
}

/** The registry of one runtime. */
export class Registry {
  #tools;
  #bus;
  #port;
  #agent;
  #allocation;
  #options;
  /** @type {{url: string, stub: NodeStub, clear: () => void, state: string} | null} */
  #stub = null;
  #minted = 0;
  /** @type {{until: number, why: string} | null} */
  #cooling = null;
  /** @type {string | null} */
  #link = null;
  /** @type {Map<string, string>} */
  #routes = new Map();
  /** @type {Map<string, Kept>} */
  #kept = new Map();
  #alarm;
  #status;
  /** @type {import("./routes.js").Links | null} */
  #links = null;
  /** What records say of direct links. @type {JsonObject} */
  #reach = {};
  /** @type {Set<(live: boolean) => void>} */
  #watchers = new Set();
  /** @type {Set<() => Promise<unknown>>} */
  #forgotten = new Set();
  /** Addresses of hyperties, which are claimed again. @type {Set<string>} */
  #owned = new Set();
  /** What follows the status of each record. @type {Map<string, Set<{report: Report}>>} */
  #followed = new Map();
  #reports;
  /** @type {Map<string, Follower>} */
  #hyperties = new Map();
  #room = new Shares(FOLLOWED);

  /**
   * @param {import("./bus.js").Tools} tools
   * @param {import("./bus.js").MessageBus} bus
   * @param {(part: string, take: (message: Message) => void) => import("./bus.js").Port} part opens a part of the runtime
   * @param {NodeOptions} options
   */
  constructor(tools, bus, part, options) {
    this.#tools = tools;
    this.#bus = bus;
    this.#options = options;
    const refusing = /** @param {string} name */ (name) => /** @param {Message} message */ (message) =>
      bus.lost(message, CODES.MALFORMED, `${name} takes no such request`);
    this.#agent = part("ua", refusing("the runtime"));
    this.#port = part("registry", (message) => {
      const hyperty = this.#hyperties.get(message.from);
      if (hyperty && isOfFollowing(message)) return void this.#asked(message, hyperty);
      if (this.#links) this.#links.asked(message);
      else refusing("the registry")(message);
    });
    this.#allocation = part("address-allocation", refusing("the address allocation"));
    this.#alarm = new Alarm(tools.clock, () => this.#keepAlive());
    this.#status = {
      name: "registry",
      /** @param {Message} message */
      take: (message) => this.#seen(message),
    };
    this.#reports = {
      name: "registry",
      /** @param {Message} message */
      take: (message) => this.#reported(message),
    };
    bus.resolve = (message) => this.#resolve(message);
  }

  /** State of the connection to the node: that of the machine `stub_connection`. */
  get state() {
    return this.#stub?.stub.state ?? "created";
  }

  /** Token that resumes the session; null: there is none. */
  get session() {
    return this.#stub?.stub.session ?? this.#options.session;
  }

  /** The reason why the node has ended the session for good; null: not ended. @type {string | null} */
  endReason = null;
  /** The request for addresses of earlier runs, made once. @type {Promise<void> | null} */
  #recalling = null;
  /** Addresses without a hyperty now, by descriptor or name. @type {Map<string, string[]>} */
  #former = new Map();

  /** Number of messages that wait for the node. */
  get queued() {
    return this.#stub?.stub.queued ?? 0;
  }

  /** The direct links; null: none are used. */
  get links() {
    return this.#links;
  }

  /**
   * Use direct links from now on: records of hyperties that are deployed later name the handler.
   *
   * @param {import("./routes.js").LinkStubs} stubs
   */
  async useLinks(stubs) {
    const listed = () => [...this.#kept.keys()];
    const registry = { port: this.#port, agent: this.#agent, listed, routesChanged: () => this.routesChanged() };
    const { Links } = await import("./direct.js");
    this.#links = new Links(this.#tools, this.#bus, registry, stubs);
    this.#reach = (await this.#links.openHandler()) ?? {};
    return this.#links;
  }

  /** Clear the cache of routes, because a link was opened or lost. */
  routesChanged() {
    this.#routes.clear();
  }

  /**
   * Call a function each time that the connection to the node becomes live, or ends.
   *
   * @param {(live: boolean) => void} watcher
   */
  watch(watcher) {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /**
   * Call a function each time that the node has lost the session's state, to restore it.
   *
   * @param {() => Promise<unknown>} report resolves when everything is had again
   */
  onForgotten(report) {
    this.#forgotten.add(report);
  }

  // ---- ways

  /**
   * @param {Message} message
   * @returns {Way}
   */
  #resolve(message) {
    const { to } = message;
    const link = this.#links?.wayOf(message);
    if (link) {
      if (this.#routes.get(to) !== link) this.#recordWay(to, link, "a live link leads there");
      return { stub: link };
    }
    const known = this.#routes.get(to);
    if (known) return { stub: known };
    const { trace, domain } = this.#tools;
    const kind = isByNode(message) ? "node" : "reach";
    trace.record("registry", { k: "resolve", op: "start", to, kind });
    const job = new Entity("resolve_job", `node|${domain}`);
    trace.step("registry", job.step("asked"));
    if (this.#stub) trace.step("registry", job.step("attach", "deployed"));
    else if (this.#cooling && this.#tools.clock.now() < this.#cooling.until) {
      const why = `no route to the node of ${domain} a moment ago: ${this.#cooling.why}`;
      trace.step("registry", job.step("none", this.#cooling.why));
      trace.record("registry", { k: "resolve", op: "done", to, kind, why });
      const retryAfter = this.#cooling.until - this.#tools.clock.now();
      return { code: CODES.UNAVAILABLE, why, retryAfter };
    } else {
      trace.step("registry", job.step("deploy"));
      this.#deploy();
    }
    trace.step("registry", job.step("found"));
    const stub = /** @type {{url: string}} */ (this.#stub).url;
    trace.record("registry", { k: "resolve", op: "done", to, kind, why: `the node of ${domain}`, result: stub });
    this.#keepWay(to, stub);
    return { stub };
  }

  /**
   * @param {string} to
   * @param {string} result
   * @param {string} why
   */
  #recordWay(to, result, why) {
    const { trace } = this.#tools;
    trace.record("registry", { k: "resolve", op: "start", to, kind: "reach" });
    trace.record("registry", { k: "resolve", op: "done", to, kind: "reach", why, result });
    this.#keepWay(to, result);
  }

  /**
   * @param {string} to
   * @param {string} stub
   */
  #keepWay(to, stub) {
    this.#routes.set(to, stub);
    trim(this.#routes, ROUTES);
  }

  // ---- the stub of the node

  #deploy() {
    const { runtime, domain, trace } = this.#tools;
    this.#minted += 1;
    const url = `${runtime}/protostub/${this.#minted}`;
    trace.row("registry", "add", "stubs", domain, `${url} deploying`, "registry");
    const terms = { url, origin: /** @type {const} */ ("node-stub"), agent: this.#agent.url, status: this.#status };
    const { stub, open, clear } = deployStub(this.#bus, trace, terms, (port) =>
      new NodeStub(this.#tools, port, { ...this.#options, url, session: this.session }));
    this.#stub = { url, stub, clear, state: "deploying" };
    stub.start();
    open();
    trace.row("registry", "upd", "stubs", domain, `${url} created`, "registry");
  }

  /**
   * Process a status event of the node's stub.
   *
   * @param {Message} message
   */
  #seen(message) {
    const stub = this.#stub;
    if (!stub || message.from !== stub.url) return true;
    const { domain, trace } = this.#tools;
    const state = textOf(message.body.value);
    const was = stub.state;
    stub.state = state;
    trace.row("registry", "upd", "stubs", domain, `${stub.url} ${state}`, "registry");
    if (state === "failed" && was === "disconnected") {
      // It refuses what comes: another stub would log in again.
      this.endReason = reasonIn(message);
      this.#options.onEnd(this.endReason);
    } else if (state === "failed") this.#failed(reasonIn(message) || "it could not connect");
    if ((state === "live") !== (was === "live")) {
      for (const watcher of this.#watchers) watcher(state === "live");
    }
    if (state === "live") {
      const link = textOf(message.body.link);
      const isNew = this.#link !== null && this.#link !== link;
      this.#link = link;
      if (isNew) {
        void this.#replay(stub.url, link);
      }
    }
    return true;
  }

  /** @param {string} why */
  #failed(why) {
    const stub = this.#stub;
    if (!stub) return;
    this.#cooling = { until: this.#tools.clock.now() + constants.RETRY_COOL_DOWN, why };
    this.#removed(stub.url, "deployed");
    void this.#disconnect(stub.url).then(stub.clear);
  }

  /**
   * @param {string} url
   * @param {string} state
   */
  #removed(url, state) {
    this.#stub = null;
    this.#tools.trace.row("registry", "del", "stubs", this.#tools.domain, `${url} ${state}`, "registry");
    this.routesChanged();
  }

  /** @param {string} url */
  async #disconnect(url) {
    return this.#agent.ask("execute", url, { method: "disconnect", params: [] });
  }

  /** Open the session with the node, and wait for it. */
  async connect() {
    const to = `domain://msg-node.${this.#tools.domain}/session`;
    return granted("the node gives no session", await this.#agent.ask("execute", to, { method: "ping" }));
  }

  /** End the session with the node. */
  async disconnect() {
    const stub = this.#stub;
    if (!stub) return;
    await this.#disconnect(stub.url);
    this.#removed(stub.url, stub.state);
    stub.clear();
  }

  // ---- addresses

  /**
   * Let the node allocate addresses.
   *
   * @param {string} scheme such as `hyperty` or `comm`
   * @param {number} [number]
   * @returns {Promise<string[]>}
   */
  async allocate(scheme, number = 1) {
    if (!(number >= 1 && number <= constants.MAX_ALLOCATION)) {
      throw new RangeError(`1 to ${constants.MAX_ALLOCATION} addresses are allocated at once`);
    }
    const to = urls.allocationOf(this.#tools.domain);
    const answer = await this.#allocation.ask("create", to, { scheme, value: { number } });
    granted("no address was allocated", answer);
    const { value } = answer.body;
    const allocated = isObject(value) ? value.allocated : null;
    const isRight = Array.isArray(allocated) && allocated.length === number &&
      allocated.every((one) => typeof one === "string");
    if (!isRight) throw new Error(`the node has not allocated ${number} addresses`);
    return /** @type {string[]} */ (allocated);
  }

  /**
   * Return an address for a hyperty: one that such a hyperty of this runtime had before, also
   * before a reload, else a new one.
   *
   * @param {string} purpose its descriptor, or its name
   * @param {{user: string | null, isNamed: boolean, exactly?: string}} terms who is logged in;
   *   whether the runtime may have been here before; the address that it has to be
   * @returns {Promise<string>}
   */
  async addressFor(purpose, { user, isNamed, exactly }) {
    if (isNamed && exactly === undefined) await (this.#recalling ??= this.#recall(user));
    const former = this.#former.get(purpose) ?? [];
    for (;;) {
      const at = exactly === undefined ? 0 : former.indexOf(exactly);
      const [url] = at < 0 ? [] : former.splice(at, 1);
      if (url === undefined) break;
      // What another session has got meanwhile is lost.
      if (isSuccess(await this.claim(url))) return url;
      this.#owned.delete(url);
    }
    if (exactly === undefined) {
      const [url] = await this.allocate("hyperty");
      this.#owned.add(url);
      return url;
    }
    throw new RangeError(`${exactly} is not kept for such a hyperty; deploy it without naming an address`);
  }

  /**
   * Reserve an address for the next hyperty with the same descriptor or name.
   *
   * @param {string} purpose
   * @param {string} url
   */
  keep(purpose, url) {
    this.#owned.add(url);
    this.#former.set(purpose, [...(this.#former.get(purpose) ?? []), url]);
  }

  /**
   * Search the domain registry for addresses that earlier runs of this runtime have registered.
   *
   * @param {string | null} user
   */
  async #recall(user) {
    const { runtime } = this.#tools;
    const answer = await this.search({ resource: `/hyperty/runtime/${runtime}` });
    const { value } = answer.body;
    for (const one of isSuccess(answer) && Array.isArray(value) ? value : []) {
      if (!isObject(one) || one.runtime !== runtime || (one.user ?? null) !== user) continue;
      this.keep(textOf(one.descriptor ?? one.name), textOf(one.url));
    }
  }

  /**
   * Give addresses back to the node. Idempotent.
   *
   * @param {string[]} addresses
   */
  async free(addresses) {
    for (const url of addresses) this.#owned.delete(url);
    const to = urls.allocationOf(this.#tools.domain);
    return this.#allocation.ask("delete", to, { childrenResources: addresses });
  }

  // ---- records

  /**
   * Register a record and keep it alive.
   *
   * @param {JsonObject} record with `url` and what else is to be found
   */
  async register(record) {
    const { runtime } = this.#tools;
    const whole = { status: "live", expires: constants.REGISTRATION_EXPIRES, ...record, ...this.#reach, runtime };
    const url = String(record.url);
    granted(`${url} is not registered`, await this.#say("create", url, { value: whole }));
    this.#bus.listen(urls.statusOf(url), this.#status, this.#agent.url);
    const isNew = !this.#kept.has(url);
    this.#kept.set(url, new Kept(whole, this.#tools.clock.now() + Number(whole.expires) / constants.KEEP_ALIVE_SHARE));
    if (isNew) this.#links?.lists.changed(url, "add");
    this.#schedule();
  }

  /**
   * Set a record to disconnected. Idempotent.
   *
   * @param {string} url
   */
  async unregister(url) {
    if (!this.#kept.delete(url)) return;
    this.#links?.lists.changed(url, "remove");
    this.#bus.unlisten(urls.statusOf(url), this.#status, this.#agent.url);
    this.#schedule();
    await this.#say("update", url, { resource: url, attribute: "status", value: "disconnected" });
  }

  /**
   * Return the record of an address.
   *
   * @param {string} url
   */
  async read(url) {
    return this.#say("read", url, { resource: url });
  }

  /**
   * Search the registry of a domain.
   *
   * @param {JsonObject} body `resource`, `criteria`, `limit` and `after` of a search
   * @param {string} [domain]
   */
  async search(body, domain = this.#tools.domain) {
    return this.#port.ask("read", urls.registryOf(domain), body);
  }

  /**
   * Follow the status of a record: it is reported now, and each time that it changes (REG-16).
   *
   * @param {string} url
   * @param {Report} report
   * @returns {Promise<() => Promise<void>>} ends that
   */
  async follow(url, report) {
    const follower = { report };
    const followers = this.#followed.get(url) ?? new Set();
    this.#followed.set(url, followers.add(follower));
    this.#bus.listen(urls.registrationOf(url), this.#reports, this.#port.url);
    const leave = async () => {
      if (!followers.delete(follower) || followers.size) return;
      this.#followed.delete(url);
      this.#bus.unlisten(urls.registrationOf(url), this.#reports, this.#port.url);
      await this.#watchRecord("unsubscribe", url);
    };
    const answer = await this.#watchRecord("subscribe", url);
    if (!isSuccess(answer)) void leave();
    granted(`${url} is not followed`, answer);
    await this.#readStatus(url, [follower]);
    return leave;
  }

  /**
   * Let a hyperty follow records, as it asks for them by messages.
   *
   * @param {string} hyperty
   * @param {Follower["tell"]} tell
   * @returns {() => void} ends that
   */
  serve(hyperty, tell) {
    /** @type {Follower} */
    const follower = { tell, followed: new Map() };
    this.#hyperties.set(hyperty, follower);
    return () => {
      this.#hyperties.delete(hyperty);
      for (const url of [...follower.followed.keys()]) this.#left(hyperty, follower, url);
    };
  }

  /**
   * Begin or end to follow a record for a hyperty, by its request (M-29). Idempotent.
   *
   * @param {Message} request
   * @param {Follower} follower
   */
  async #asked(request, follower) {
    const { from, type, body } = request;
    const { followed, tell } = follower;
    let url = "";
    try {
      const [named, ...others] = [body.resources].flat();
      url = address(named, "resources").slice(0, -REGISTRATION.length);
      if (others.length || urls.isBackend(url)) throw new BadMessageError("one record of a hyperty or object is followed at a time");
      if (type === "unsubscribe") this.#left(from, follower, url);
      else {
        if (!followed.has(url)) {
          if (!this.#room.enter(from)) throw new BadMessageError("the hyperties here follow no more records", CODES.TOO_LARGE);
          followed.set(url, this.follow(url, (status) => tell(url, status)));
        }
        await followed.get(url);
      }
      this.#port.post(replyTo(request, CODES.OK));
    } catch (error) {
      if (error instanceof RefusedError) this.#left(from, follower, url);
      const { code = CODES.INTERNAL, message } = /** @type {Error & {code?: number}} */ (error);
      this.#port.post(refuse(request, code, message));
    }
  }

  /**
   * @param {string} hyperty
   * @param {Follower} follower
   * @param {string} url
   */
  #left(hyperty, { followed }, url) {
    const following = followed.get(url);
    if (!following) return;
    followed.delete(url);
    this.#room.leave(hyperty);
    following.then((leave) => leave(), () => {});
  }

  /**
   * @param {"subscribe" | "unsubscribe"} type
   * @param {string} url
   */
  #watchRecord(type, url) {
    return this.#port.ask(type, urls.subscriptionManager(urls.domainOf(url)), { resources: [urls.registrationOf(url)] });
  }

  /**
   * @param {string} url
   * @param {Iterable<{report: Report}>} followers
   */
  async #readStatus(url, followers) {
    const answer = await this.read(url);
    const [record] = [answer.body.value].flat();
    if (isObject(record)) this.#report(followers, textOf(record.status));
    else if (codeOf(answer) === CODES.NOT_FOUND) this.#report(followers, null);
  }

  /**
   * @param {Iterable<{report: Report}>} followers
   * @param {string | null} status
   */
  #report(followers, status) {
    // What the page does with it does not disturb the bus.
    for (const { report } of followers) queueMicrotask(() => report(status));
  }

  /**
   * Process a domain registry's report about a record's status (M-30).
   *
   * @param {Message} message
   */
  #reported(message) {
    const url = message.to.slice(0, -REGISTRATION.length);
    const { value } = message.body;
    if (typeof value !== "string") this.#tools.counters.drop(DROPS.MALFORMED, "registry", message);
    else {
      this.#links?.forget(url);
      this.#report(this.#followed.get(url) ?? [], value);
    }
    return true;
  }

  /**
   * Subscribe again to a record's status after the node has lost the subscription, and read it.
   *
   * @param {string} url
   */
  async #followAgain(url) {
    const followers = this.#followed.get(url);
    if (!followers) return;
    const { clock } = this.#tools;
    if (isSuccess(await this.#watchRecord("subscribe", url))) await this.#readStatus(url, followers);
    else clock.at(clock.now() + constants.RETRY_COOL_DOWN, () => void this.#followAgain(url));
  }

  /**
   * @param {import("./message.js").MessageType} type
   * @param {string} url
   * @param {JsonObject} body
   */
  #say(type, url, body) {
    return this.#port.ask(type, urls.registryOf(urls.domainOf(url)), body);
  }

  #schedule() {
    this.#alarm.set(Math.min(...[...this.#kept.values()].map((one) => one.due)));
  }

  #keepAlive() {
    const now = this.#tools.clock.now();
    for (const [url, kept] of this.#kept) {
      if (kept.due > now) continue;
      kept.due = now + Number(kept.record.expires) / constants.KEEP_ALIVE_SHARE;
      void this.#say("update", url, { resource: url }).then((answer) => {
        if (isSuccess(answer)) return;
        if (codeOf(answer) === CODES.NOT_FOUND) void this.#again(url);
        else kept.due = Math.min(kept.due, this.#tools.clock.now() + constants.RETRY_COOL_DOWN);
        this.#schedule();
      });
    }
    this.#schedule();
  }

  /**
   * Restore the session's state that the node has lost: claim all addresses and register all records
   * again. The stub sends no other messages meanwhile.
   *
   * @param {string} stub
   * @param {string} link name of the new session
   */
  async #replay(stub, link) {
    await Promise.all([...new Set([...this.#owned, ...this.#kept.keys()])].map((url) => this.#claimed(url)));
    for (const url of this.#followed.keys()) void this.#followAgain(url);
    await Promise.race([
      Promise.all([
        ...[...this.#kept.keys()].map((url) => this.#registerAgain(url)),
        ...[...this.#forgotten].map((report) => report()),
        this.#links?.renew(),
      ]),
      // What the node refuses for now is asked for again, and holds up nobody for longer.
      sleep(this.#tools.clock, constants.RENEW_TIMEOUT),
    ]);
    await this.#agent.ask("execute", stub, { method: "renewed", link });
  }

  /**
   * Claim an address again until the node answers, unless the address is released meanwhile.
   *
   * @param {string} url
   */
  async #claimed(url) {
    while (this.#owned.has(url) || this.#kept.has(url)) {
      const code = codeOf(await this.claim(url));
      if ((code !== CODES.TIMEOUT && code !== CODES.UNAVAILABLE) || !this.#stub) return;
      await sleep(this.#tools.clock, constants.RETRY_AFTER);
    }
  }

  /** @param {string} url */
  async #again(url) {
    await this.claim(url);
    await this.#registerAgain(url);
  }

  /** @param {string} url */
  async #registerAgain(url) {
    const kept = this.#kept.get(url);
    if (kept) await this.#say("create", url, { value: kept.record });
  }

  /**
   * Claim an address that an earlier session had.
   *
   * @param {string} url
   */
  async claim(url) {
    const to = urls.subscriptionManager(urls.domainOf(url));
    return this.#port.ask("subscribe", to, { resources: [url], source: this.#tools.runtime });
  }

  /** Stop the keep-alive of all records. */
  close() {
    this.#kept.clear();
    this.#followed.clear();
    this.#alarm.set(Infinity);
  }
}

/**
 * Return whether a message asks to follow a record, or to end that.
 *
 * @param {Message} message
 */
function isOfFollowing({ type, body }) {
  const [named] = [body.resources].flat();
  return (type === "subscribe" || type === "unsubscribe") && textOf(named).endsWith(REGISTRATION);
}
