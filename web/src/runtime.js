/** A runtime in a page: it combines all components, and is the interface for applications. */

import { canonical, domainOf, inboxOf, runtimeAddress } from "./address.js";
import { Mailbox, MessageBus, MiniBus, Port } from "./bus.js";
import { CLOCK } from "./clock.js";
import { GOODBYE_TIMEOUT } from "./constants.js";
import { Counters } from "./counters.js";
import { codeFrom, Hyperty } from "./hyperty.js";
import { Ids } from "./ids.js";
import { openKey, RuntimeKey } from "./keys.js";
import { Registry } from "./registry.js";
import { SandboxError } from "./worker.js";
import { Trace } from "./trace.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {import("./hyperty.js").Code} Code */

/**
 * @typedef {object} RuntimeOptions
 * @property {string} domain
 * @property {string} node URL of the node, such as wss://node.a.example/link
 * @property {string} [name] name of the runtime; without it, one by chance
 * @property {string | (() => string | Promise<string>)} [token] token for a login, or what gets one
 *   for each login; a token is good for one login
 * @property {CryptoKeyPair | null} [key] Ed25519; without it, a new one; null: no key is shown
 * @property {string} [session] token of a session to resume, from `runtime.session`
 * @property {boolean | {limit?: number}} [trace] whether records are kept; false
 * @property {(reason: string) => unknown} [onEnd] called when the node has ended the session for good
 * @property {import("./bus.js").Policy} [policy] judges each message that crosses the runtime
 * @property {string | URL} [worker] where a Worker loads this module from; this module's URL
 * @property {boolean | P2pOptions} [p2p] whether direct links are used; false
 * @property {boolean} [insecure] permits ws: to another machine; false
 * @property {(url: string, protocol: string) => import("./node.js").Socket} [connect]
 * @property {import("./clock.js").Clock} [clock]
 */

/**
 * @typedef {object} P2pOptions
 * @property {RTCIceServer[]} [iceServers] STUN and TURN servers; without them, those of the domain
 * @property {boolean} [relayOnly] whether links use TURN servers only; false
 * @property {"identity-provider" | "domain" | "none"} [require] who has to vouch for a peer; with a
 *   login the domain
 * @property {Record<string, import("./p2p/issuers.js").Issuer>} [issuers] identity providers that are
 *   believed, by the name that their tokens have (`iss`)
 */

/**
 * @typedef {object} DeployOptions
 * @property {string} [integrity] `sha256-...` of the module, in base64, as HTML writes it
 * @property {string} [descriptor] catalogue address of its descriptor
 * @property {string} [address] the one that it has to have: of a hyperty like it that rests
 * @property {string[]} [resources] what others search for
 * @property {string[]} [dataSchemes]
 * @property {(why: string) => void} [onEnded] is called if the sandbox ends by itself
 */

/** A deployed hyperty, with the functions that the page may call in the hyperty's name. */
export class Deployed extends Hyperty {
  #close;

  /**
   * @param {string} url
   * @param {string} name
   * @param {import("./hyperty.js").Outlet} outlet
   * @param {(isKept?: boolean) => Promise<void>} close
   */
  constructor(url, name, outlet, close) {
    super(url, name, outlet);
    this.#close = close;
  }

  /** Unregister and stop the hyperty; reserve its address for the next one of the same descriptor
   * or name. */
  rest() {
    return this.#close(true);
  }

  /** Unregister and stop the hyperty, and release its address. Idempotent. */
  close() {
    return this.#close();
  }
}

/** One runtime, with its session with the node, its hyperties and links; made by `openRuntime`. */
export class Runtime {
  #tools;
  #bus;
  #options;
  /** @type {Map<string, Deployed>} */
  #deployed = new Map();
  /** @type {Promise<void> | null} */
  #closing = null;
  /** @type {(() => unknown | Promise<unknown>)[]} */
  #parts = [];
  /** @type {Promise<import("./sync/manager.js").SyncManager> | null} */
  #objects = null;

  /**
   * @param {RuntimeOptions} options
   * @param {RuntimeKey | null} key
   */
  constructor(options, key) {
    const { domain, name = nameByChance() } = options;
    const runtime = runtimeAddress(domain, name);
    const kept = typeof options.trace === "object" ? options.trace : {};
    const trace = new Trace({ node: name, keeps: Boolean(options.trace), ...kept });
    const counters = new Counters();
    this.#options = options;
    this.#tools = {
      runtime,
      domain: domainOf(runtime),
      trace,
      ids: new Ids(),
      clock: options.clock ?? CLOCK,
      counters,
      confined: new Set(),
      own: () => this.said.identity,
    };
    this.#bus = new MessageBus(this.#tools, options.policy);
    this.url = runtime;
    this.domain = this.#tools.domain;
    /** The key of this runtime; null: it shows none. */
    this.key = key;
    /** The trace: the records of all events in this runtime. */
    this.trace = trace;
    /** How many messages were dropped, by reason, and the last ones. */
    this.counters = counters;
    /** Sender, statement and keys of the domain, as the node has said.
     * @type {import("./node.js").Said} */
    this.said = { identity: null, assertion: null, statement: null, domainKeys: null };
    const { token } = options;
    this.registry = new Registry(this.#tools, this.#bus, (part, take) => this.part(part, take), {
      nodeUrl: options.node,
      credentials: token === undefined ? null : async () => (typeof token === "function" ? token() : token),
      isSingleToken: typeof token === "string",
      key,
      session: options.session ?? null,
      onEnd: (reason) => options.onEnd?.(reason),
      connect: options.connect ?? ((url, protocol) => new WebSocket(url, protocol)),
      onSaid: (said) => Object.assign(this.said, said),
    });
  }

  // ---- for the components of a runtime: seams, see docs/architecture.md

  /** The objects that all components share. */
  get tools() {
    return this.#tools;
  }

  /** The Message BUS. */
  get bus() {
    return this.#bus;
  }

  /**
   * Register a component of the runtime, with the address `<runtime>/<name>`.
   *
   * @param {string} name such as `sm`
   * @param {Mailbox | ((message: Message) => unknown)} take handles what comes for it
   * @returns {Port}
   */
  part(name, take) {
    const url = `${this.#tools.runtime}/${name}`;
    this.#bus.grant(url, url);
    const mailbox = take instanceof Mailbox ? take : new Mailbox(name === "ua" ? "loader" : name, take);
    this.#bus.listen(url, mailbox, url);
    return new Port(this.#bus, url);
  }

  /**
   * Call a function when the runtime closes, while it is still connected.
   *
   * @param {() => unknown | Promise<unknown>} act
   */
  beforeClose(act) {
    this.#parts.push(act);
  }

  // ---- for applications

  /** Token that resumes the session after a reload; null: there is none. Keep it secret. */
  get session() {
    return this.registry.session;
  }

  /** State of the connection to the node: `created`, `in-progress`, `live`, `disconnected` or
   * `failed`. */
  get state() {
    return this.registry.state;
  }

  /** Why the node has ended the session for good, such as `taken over by another login`; null: it
   * has not. The runtime does not log in again by itself. */
  get endReason() {
    return this.registry.endReason;
  }

  /** The hyperties that are deployed. */
  get hyperties() {
    return [...this.#deployed.values()];
  }

  /**
   * Deploy a hyperty: allocate an address, start its code, register it.
   *
   * @param {string} name
   * @param {string | URL | Blob | Code | Function} code the URL of a module, or its text in a Blob,
   *   which runs in a Worker; or an object or class, which runs in the page
   * @param {DeployOptions} [options]
   * @returns {Promise<Deployed>}
   */
  async deploy(name, code, options = {}) {
    this.#checkOpen();
    const isModule = typeof code === "string" || code instanceof URL || code instanceof Blob;
    const source = isModule ? await sourceOf(code, options.integrity) : null;
    const { user = null } = this.said.identity ?? {};
    const purpose = options.descriptor ?? name;
    const isNamed = this.#options.name !== undefined;
    const url = await this.registry.addressFor(purpose, { user, isNamed, exactly: options.address });
    const port = new Port(this.#bus, url);
    let isOver = false;
    /** @type {(() => void) | null} */
    let stop = null;
    const leave = async (isKept = false) => {
      if (isOver) return;
      isOver = true;
      this.#deployed.delete(url);
      await (await this.#objects?.catch(() => null))?.left(url);
      own?.end();
      await this.registry.unregister(url);
      stop?.();
      if (isKept) this.registry.keep(purpose, url);
      else await this.registry.free([url]);
      this.#tools.ids.forget(url);
    };
    /** @type {import("./objects.js").Objects | null} */
    let own = null;
    const objects = source === null ? async () => {
      const loaded = await this.#objectsOf(url, port);
      // Concurrent calls must share one object, as messages are delivered to one only.
      return (own ??= loaded);
    } : undefined;
    const outlet = {
      objects,
      // Status reports for code in a Worker are sent to the Worker.
      registry: source === null ? `${this.url}/registry` : undefined,
      nextId: /** @param {string} from */ (from) => this.#bus.nextId(from),
      post: /** @param {Message} message */ (message) => port.post(message),
      request: /** @type {import("./hyperty.js").Outlet["request"]} */ ((...asked) => port.request(...asked)),
    };
    const deployed = new Deployed(url, name, outlet, leave);
    this.#deployed.set(url, deployed);
    try {
      const ended = /** @param {string} why */ (why) => {
        void leave();
        options.onEnded?.(why);
      };
      if (source === null) stop = await this.#runHere(deployed, /** @type {Code | Function} */ (code));
      else stop = await this.#runApart(deployed, port, source, ended);
      const { descriptor, resources = [], dataSchemes = [] } = options;
      const who = user === null ? {} : { user };
      await this.registry.register({ url, name, descriptor, resources, dataSchemes, ...who });
    } catch (error) {
      await leave();
      throw error;
    }
    return deployed;
  }

  /**
   * @param {string} url
   * @param {Port} port
   */
  async #objectsOf(url, port) {
    await this.sync();
    const { Objects } = await import("./more.js");
    const { runtime, trace, clock, ids } = this.#tools;
    const nextId = /** @param {string} from */ (from) => ids.next(from);
    return new Objects({ url, runtime, port, trace, clock, nextId });
  }

  /**
   * Use direct links from now on.
   *
   * @param {P2pOptions} options
   */
  async useLinks(options) {
    const { key, said, domain } = this;
    if (!key) throw new TypeError("direct links need a key");
    const { iceServers = null, relayOnly = false } = options;
    const { issuers = {}, require = this.#options.token === undefined ? "none" : "domain" } = options;
    const manager = await this.sync();
    const { checkIssuers, linkStubs } = await import("./direct.js");
    checkIssuers(issuers);
    const identity = { key, said, domain, require, issuers };
    const stubs = await linkStubs({ tools: this.#tools, bus: this.#bus, identity, iceServers, relayOnly });
    manager.useLinks(await this.registry.useLinks(stubs));
  }

  /** The direct links: the runtime at the other end, and whether messages go by it. */
  get p2p() {
    const { entries = [] } = this.registry.links ?? {};
    return entries.map(({ remote, isLive, link }) => ({ runtime: remote, link, isLive }));
  }

  /** The sync manager, which is loaded when it is used first. */
  sync() {
    const loading = (this.#objects ??= (async () => {
      const { SyncContext, SyncManager } = await import("./more.js");
      /** @type {import("./sync/manager.js").SyncManager} */
      let manager;
      const mailbox = new Mailbox("sm", (message) => manager.take(message));
      const port = this.part("sm", mailbox);
      manager = new SyncManager(new SyncContext(this.#tools, this.#bus, this.registry, port, mailbox));
      return manager;
    })());
    loading.catch(() => (this.#objects = null));
    return loading;
  }

  /**
   * @param {string} url
   * @param {import("./bus.js").Listener} component
   * @param {import("./registry.js").Follower["tell"]} tell
   */
  #open(url, component, tell) {
    const agent = `${this.url}/ua`;
    const miniBus = new MiniBus(url, this.trace, (...lost) => this.#bus.lost(...lost));
    this.#bus.grant(url, url);
    for (const address of [url, inboxOf(url)]) this.#bus.listen(address, miniBus, agent);
    miniBus.listen("*", component);
    const unserve = this.registry.serve(url, tell);
    return () => {
      unserve();
      for (const address of [url, inboxOf(url)]) this.#bus.unlisten(address, miniBus, agent);
      this.#bus.revoke(url, url);
    };
  }

  /**
   * @param {Deployed} deployed
   * @param {Code | Function} exported
   */
  async #runHere(deployed, exported) {
    const code = codeFrom(exported, deployed);
    const box = new Mailbox(deployed.url, (message) => deployed.handle(code, message));
    const close = this.#open(deployed.url, box, (...told) => deployed.told(...told));
    try {
      if (code.invited) await deployed.loadObjects();
      await code.started?.(deployed);
    } catch (error) {
      close();
      throw error;
    }
    return close;
  }

  /**
   * @param {Deployed} deployed
   * @param {Port} port
   * @param {string} source
   * @param {(why: string) => void} onEnded
   */
  async #runApart({ url, name }, port, source, onEnded) {
    const worker = this.#options.worker ?? import.meta.url;
    let isStarted = false;
    const { Sandbox } = await import("./more.js");
    const sandbox = new Sandbox(this.#tools, port, {
      url,
      name,
      source,
      worker,
      objects: async () => {
        await this.sync();
        return objectsFor(worker);
      },
      onEnded: (why) => isStarted && onEnded(why),
    });
    const shut = this.#open(url, sandbox, (...told) => sandbox.tell(...told));
    this.#tools.confined.add(url);
    const close = () => {
      sandbox.close();
      shut();
      this.#tools.confined.delete(url);
    };
    try {
      await sandbox.start();
    } catch (error) {
      close();
      throw error;
    }
    isStarted = true;
    return close;
  }

  /**
   * Send a request in the name of the runtime, and return the whole answer.
   *
   * @param {import("./message.js").MessageType} type
   * @param {string} to
   * @param {JsonObject} body
   */
  ask(type, to, body) {
    this.#checkOpen();
    return new Port(this.#bus, `${this.url}/ua`).ask(type, to, body);
  }

  /**
   * Find hyperties of a user in a domain.
   *
   * @param {string} user address of the user
   * @param {{domain?: string, resources?: string[], dataSchemes?: string[]}} [options]
   * @returns {Promise<JsonObject[]>}
   */
  async find(user, { domain, ...criteria } = {}) {
    const answer = await this.registry.search({ resource: `/hyperty/user/${user}`, criteria }, domain);
    const { value, code } = answer.body;
    return code === 200 && Array.isArray(value) ? /** @type {JsonObject[]} */ (value) : [];
  }

  /**
   * Follow the status of a record of a hyperty or data object: it is reported now, and each time
   * that it changes.
   *
   * @param {string} url
   * @param {import("./registry.js").Report} report
   * @returns {Promise<() => Promise<void>>} ends that
   */
  follow(url, report) {
    this.#checkOpen();
    return this.registry.follow(canonical(url), report);
  }

  #checkOpen() {
    if (this.#closing) throw new Error(`the runtime ${this.url} is closed`);
  }

  /** Unregister and stop all hyperties, end the session, and end the trace. Idempotent. */
  close() {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  async #leave() {
    await this.#within(Promise.all(this.#parts.map((act) => act())));
    await this.#within(Promise.all(this.hyperties.map((one) => one.close())));
    const objects = await this.#objects?.catch(() => null);
    if (objects) await this.#within(objects.close());
    objects?.letGo();
    await this.#within(Promise.resolve(this.registry.links?.close()));
    this.registry.close();
    await this.#within(this.registry.disconnect());
    this.#bus.close();
    this.trace.end();
  }

  /**
   * Wait for an operation during the close, with a time limit, as the node may not answer.
   *
   * @param {Promise<unknown>} step
   */
  #within(step) {
    const { clock } = this.#tools;
    return new Promise((resolve) => {
      const cancel = clock.at(clock.now() + GOODBYE_TIMEOUT, () => resolve(null));
      const done = () => {
        cancel();
        resolve(null);
      };
      step.then(done, done);
    });
  }
}

function nameByChance() {
  return `web-${[...crypto.getRandomValues(new Uint8Array(6))].map((one) => one.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * @param {string | URL | Blob} code
 * @param {string} [integrity]
 */
async function sourceOf(code, integrity) {
  if (code instanceof Blob) return code.text();
  const where = new URL(code, globalThis.location?.href).href;
  const response = await fetch(where, { ...(integrity ? { integrity } : {}), credentials: "same-origin" });
  if (!response.ok) throw new SandboxError(`${where} cannot be loaded: ${response.status}`);
  return response.text();
}

/**
 * Return the text of the second module (data objects) for a Worker, which has no network. Its
 * imports name the first module, which the Worker has loaded, by the complete URL.
 *
 * @param {string | URL} worker
 */
async function objectsFor(worker) {
  const first = new URL(worker, globalThis.location?.href).href;
  const text = await sourceOf(new URL("./protofly-objects.js", first));
  return text.replaceAll('"./protofly.js"', () => JSON.stringify(first));
}

/**
 * @param {RuntimeOptions} options
 */
function checkNode({ node, insecure = false }) {
  const url = new URL(node);
  const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol === "wss:" || (url.protocol === "ws:" && (isHere || insecure))) return;
  throw new TypeError(`${node} is not dialled: use wss:, or set insecure for ws: to another machine`);
}

const VOUCHERS = ["none", "domain", "identity-provider"];

/**
 * Throw an error if nobody could vouch for peers in the way that the options require.
 *
 * @param {RuntimeOptions} options
 */
function checkVouchers({ p2p }) {
  const { require = "domain", issuers = {} } = Object(p2p);
  if (!VOUCHERS.includes(require)) throw new TypeError(`require is one of ${VOUCHERS.join(", ")}, not ${require}`);
  if (require === "identity-provider" && !Object.keys(issuers).length) throw new TypeError("issuers names no identity provider");
}

/**
 * Make a runtime, and open its session with the node.
 *
 * @param {RuntimeOptions} options
 * @returns {Promise<Runtime>}
 */
export async function openRuntime(options) {
  checkNode(options);
  checkVouchers(options);
  const key = options.key === null ? null : await openKey(options.key);
  const runtime = new Runtime(options, key);
  try {
    await runtime.registry.connect();
    const { p2p } = options;
    if (p2p) await runtime.useLinks(p2p === true ? {} : p2p);
  } catch (error) {
    await runtime.close();
    throw error;
  }
  return runtime;
}
