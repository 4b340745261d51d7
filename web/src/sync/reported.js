/** The reporting side of a sync manager: the data objects of this runtime's components
 * (`actors/runtime/sync/reporter`). */

import { isBelow, runtimeOf, schemeOf, subscriptionManager } from "../address.js";
import { Host } from "../host.js";
import { Alarm, sleep } from "../clock.js";
import { CODES, DROPS } from "../constants.js";
import * as constants from "../constants.js";
import { BadMessageError, isObject, textOf } from "../json.js";
import { address, codeOf, isFinal, isRequest, isSuccess, reasonIn, viaOf } from "../message.js";
import { valueDigest } from "../trace.js";
import { checkedValue, checkPath, valueAt } from "../value.js";
import { ChildHistory } from "./child_history.js";
import { childrenOf, opIn, publishedOf, RESOURCES, windowIn } from "./children.js";
import { Alarms, RepeatsCore, RepeatTimes } from "./leases.js";
import { Held, observerOf, textIn } from "./context.js";
import { PUBLIC, ReporterCore } from "./reporter.js";
import { RuntimeRoutes } from "./routes.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("./reporter.js").DataObject} DataObject */

/** Schemes of objects that differ from the name of their schema. */
const SCHEMES = /** @type {Record<string, string>} */ ({ communication: "comm", context: "ctxt" });

/** Matches schemes of addresses that are no data objects. */
const NOT_OF_OBJECTS = /^(hyperty|runtime|domain|global|user|connection)/;

/** @param {string} address */
const isOfPart = (address) => schemeOf(address) === "hyperty-runtime";

/** @param {string} address */
export const isLink = (address) => /^hyperty-runtime:\/\/[^/]+\/[^/]+\/p2p(handler|requester)\//.test(address);

/**
 * Return the address scheme of objects of a data schema.
 *
 * @param {string} schema
 * @param {string} reporter
 */
function schemeFor(schema, reporter) {
  const name = schema.slice(schema.lastIndexOf("/") + 1).toLowerCase();
  const scheme = SCHEMES[name] ?? name;
  const isOwn = scheme === "connection" && isOfPart(reporter);
  if (!isOwn && (NOT_OF_OBJECTS.test(scheme) || !/^[a-z][a-z0-9+.-]*$/.test(scheme))) {
    throw new BadMessageError(`no data object has an address of the scheme ${scheme}`);
  }
  return scheme;
}

/** One data object that a component of this runtime reports. */
class Reported extends Held {
  wasObserved = false;
  /** Version of the list of observers; null: the reporter does not get it. @type {number | null} */
  listed;
  /** The reporter's request to delete it. @type {Message | null} */
  deleting = null;
  /**
   * @param {DataObject} created
   * @param {ChildHistory} history its children
   * @param {() => void} leave gives its room back
   * @param {(reported: Reported) => Host<ReporterCore, import("./reporter.js").ReporterPort>} host
   */
  constructor(created, history, leave, host) {
    super(created.url, leave);
    this.history = history;
    this.listed = isOfPart(created.reporter) ? null : 0;
    this.host = host(this);
  }

  get core() {
    return this.host.core;
  }

  get children() {
    return this.history.children;
  }

  /** The whole object with its children, if there is room. */
  get whole() {
    const { snapshot } = this.core;
    const isLarge = this.children.kept.size > constants.CHILDREN_OF_OBJECT || !this.children.fitsBeside(snapshot.data);
    if (!childrenOf(this.url).length || isLarge) return snapshot;
    return { ...snapshot, childrenObjects: this.history.snapshot() };
  }
}

/** All data objects that components of this runtime report. */
export class ReportedObjects {
  #context;
  /** @type {Map<string, Reported>} */
  #all = new Map();
  #repeats = new RepeatsCore();
  #signs = new RepeatTimes();
  /** When children of each object leave, or their removal is reported. */
  #removals = new Alarms();
  #routes;
  #alarm;

  /** @param {import("./context.js").SyncContext} context */
  constructor(context) {
    this.#context = context;
    this.#alarm = new Alarm(context.tools.clock, () => this.#timeOver());
    this.#routes = new RuntimeRoutes({
      addLink: (url, link) => publishedOf(url).forEach((address) => context.follow(address, link)),
      removeLink: (url, link) => publishedOf(url).forEach((address) => context.unfollow(address, link)),
    });
  }

  get reporters() {
    return [...this.#all.values()].map((one) => one.core.snapshot.reporter);
  }

  /** @param {string} url */
  reporterOf(url) {
    return this.#all.get(url)?.core.snapshot.reporter ?? null;
  }

  /**
   * Return the object that an address belongs to, such as that of its changes or subscriptions.
   *
   * @param {string} address
   */
  ownerOf(address) {
    return this.#all.get(address.replace(/\/(subscription|observers|children\/[^/]+)$/, ""));
  }

  /** @param {JsonObject} body */
  #named(body) {
    const reported = this.#all.get(textIn(body, "resource"));
    if (!reported) throw new BadMessageError("no such object", CODES.NOT_FOUND);
    return reported;
  }

  // ---- what reporters ask for

  /** @param {Message} request */
  create(request) {
    const { body } = request;
    if ("authorise" in body) return this.#invite(request);
    if ("observer" in body) return this.#setGuest(request, "add");
    const { value, schema } = body;
    if ("resume" in body || !isObject(value)) {
      throw new BadMessageError("this sync manager creates objects, and stores none");
    }
    void this.#create(request, textIn({ schema }, "schema"), value);
  }

  /**
   * @param {Message} request
   * @param {string} schema
   * @param {JsonObject} value
   */
  async #create(request, schema, { data, name, resources, childrenWindow }) {
    const context = this.#context;
    const { from, body } = request;
    let leave = () => {};
    try {
      const scheme = schemeFor(schema, from);
      const checked = checkedValue(isObject(data) ? data : {});
      const window = windowIn(childrenWindow);
      const allow = (Array.isArray(body.allow) ? body.allow : []).map((one) => address(one, "allow"));
      leave = context.roomFor(from);
      const [url] = await context.registry.allocate(scheme);
      const path = await this.#path("subscribe", url);
      if (!isSuccess(path)) {
        void context.registry.free([url]);
        throw new BadMessageError(`no path to the object: ${reasonIn(path)}`, codeOf(path));
      }
      /** @type {DataObject} */
      const created = {
        reporter: from,
        runtime: context.runtime,
        data: checked,
        url,
        version: 1,
        name: typeof name === "string" ? name : undefined,
        schema,
        resources: Array.isArray(resources) ? /** @type {string[]} */ (resources) : [],
        created: new Date().toISOString(),
        childrenWindow: window ?? undefined,
      };
      const isPublic = body.publicObservation === true;
      const make = (/** @type {import("./reporter.js").ReporterPort} */ port) => new ReporterCore(created, port, allow, isPublic);
      const history = new ChildHistory(window, Date.now() / 1000 - context.now);
      const reported = new Reported(created, history, leave, (one) =>
        new Host(context.tools.clock, this.#portOf(one), make, () => this.#settle(one)));
      this.#open(reported);
      // From now on, its end gives the room back.
      leave = () => {};
      for (const guest of [...allow, ...(isPublic ? [PUBLIC] : [])]) {
        context.trace.row("sm", "add", "guests", url, guest, from);
      }
      await this.#register(request, reported);
    } catch (error) {
      leave();
      const code = Number(/** @type {{code?: number}} */ (error).code) || CODES.INTERNAL;
      context.refuse(request, code, /** @type {Error} */ (error).message);
    }
  }

  /** @param {Reported} reported */
  #open(reported) {
    const { url } = reported;
    const { bus, port } = this.#context;
    const { reporter } = reported.core.snapshot;
    this.#all.set(url, reported);
    bus.grant(port.url, url);
    for (const address of [url, `${url}/subscription`, ...childrenOf(url)]) this.#context.listen(address);
    if (reported.listed !== null) {
      this.#context.listen(`${url}/observers`);
      this.#context.follow(`${url}/observers`, reporter);
    }
    this.#written(reported);
  }

  /**
   * @param {Message} request
   * @param {Reported} reported
   */
  async #register(request, reported) {
    const { url, core } = reported;
    const { reporter, schema, name, resources } = core.snapshot;
    if (!isOfPart(reporter)) {
      const record = { url, reporter, schema, name, resources, dataSchemes: [schemeOf(url)] };
      try {
        await this.#context.registry.register(record);
      } catch (error) {
        if (!core.isDeleted) this.#run(reported, () => core.delete(reporter));
        throw error;
      }
    }
    if (core.isDeleted) return this.#context.refuse(request, CODES.GONE, "its reporter left meanwhile");
    const childrenResources = childrenOf(url).length ? [RESOURCES] : undefined;
    this.#context.answer(request, CODES.OK, { resource: url, childrenResources });
  }

  /**
   * @param {"subscribe" | "unsubscribe"} type
   * @param {string} url
   */
  #path(type, url) {
    return this.#context.path(type, this.#context.domain, [url, `${url}/subscription`, ...childrenOf(url)]);
  }

  /** Claim all objects and repeat their subscriptions at the node, which has lost them. */
  renew() {
    return Promise.all([...this.#all.keys()].map((url) => this.#renew(url)));
  }

  /** @param {string} url */
  async #renew(url) {
    const isReported = () => this.#all.get(url)?.core.isDeleted === false;
    for (let pause = constants.READ_PAUSE; isReported(); pause = Math.min(2 * pause, constants.REPEAT_LAST)) {
      const claimed = await this.#context.registry.claim(url);
      const answer = isSuccess(claimed) && isReported() ? await this.#path("subscribe", url) : claimed;
      if (isSuccess(answer) || [CODES.FORBIDDEN, CODES.CONFLICT].some((code) => code === codeOf(answer))) {
        return;
      }
      await sleep(this.#context.tools.clock, pause);
    }
  }

  /** @param {Message} request */
  change(request) {
    const { body, from } = request;
    const { value = null, attribute, attributeType, operation } = body;
    if (attribute !== undefined) checkPath(textIn(body, "attribute"));
    const isKnown = operation === undefined || (attributeType === "array" && value !== null &&
      (operation === "add" || operation === "remove"));
    if (!isKnown) throw new BadMessageError("an operation adds elements to an array or removes them");
    const change = /** @type {import("../value.js").Change} */ ({ attribute, value, attributeType, operation });
    this.#write(request, (core) => core.change(from, change));
  }

  /** @param {Message} request */
  delete(request) {
    const { body, from } = request;
    if (body.child !== undefined && body.attribute === undefined) return this.#deleteChild(request, textIn(body, "child"));
    if (body.attribute === undefined) {
      const reported = this.#named(body);
      return this.#run(reported, (core) => {
        core.delete(from);
        reported.deleting = request;
      });
    }
    const attribute = textIn(body, "attribute");
    checkPath(attribute);
    this.#write(request, (core) => core.remove(from, attribute));
  }

  /**
   * @param {Message} request
   * @param {(core: ReporterCore) => void} change
   */
  #write(request, change) {
    const reported = this.#named(request.body);
    const before = reported.core.snapshot.version;
    this.#run(reported, change);
    const { version } = reported.core.snapshot;
    this.#context.answer(request, CODES.OK, version === before ? {} : { version });
  }

  /** @param {Message} request */
  expel(request) {
    this.#setGuest(request, "del");
  }

  /**
   * @param {Message} request
   * @param {"add" | "del"} op
   */
  #setGuest(request, op) {
    const { body, from } = request;
    const observer = address(body.observer, "observer");
    const reported = this.#named(body);
    this.#run(reported, (core, now) => {
      if (op === "add") core.allow(from, observer, now);
      else core.expel(from, observer);
      this.#context.trace.row("sm", op, "guests", reported.url, observer, from);
    });
    this.#context.answer(request, CODES.OK);
  }

  // ---- invitations

  /** @param {Message} request */
  #invite(request) {
    const { body, from } = request;
    const reported = this.#named(body);
    const observer = address(Array.isArray(body.authorise) ? body.authorise[0] : null, "observer");
    this.#run(reported, (core, now) => {
      core.invite(request, observer, now);
      this.#context.trace.row("sm", "add", "guests", reported.url, observer, from);
    });
  }

  /**
   * Process an answer to an invitation, or to the notice that an object is deleted.
   *
   * @param {Message} answer
   */
  answered(answer) {
    const reported = this.ownerOf(answer.to);
    if (!reported) return;
    const { url } = reported;
    if (answer.from !== `${url}/changes`) {
      this.#run(reported, (core, now) => core.takeAnswer(answer.from, codeOf(answer), reasonIn(answer), now));
    } else if (isFinal(answer)) {
      const { source: runtime } = answer.body;
      this.#run(reported, (core) => core.notified(typeof runtime === "string" ? [runtime] : undefined));
    }
  }

  // ---- what observers ask for

  /**
   * @param {Reported} reported
   * @param {Message} message
   */
  asked(reported, message) {
    const { url } = reported;
    if (message.to.includes("/children/")) return this.#childSaid(reported, message);
    if (!isRequest(message)) return;
    if (message.to === `${url}/observers`) return this.#askedObservers(reported, message);
    const by = viaOf(message).at(-1) ?? "";
    if (isLink(by)) void this.#askedByLink(reported, message, by);
    else this.#decide(reported, message, null);
  }

  /**
   * Decide about a request that came by a link, when the link's peer may act for its sender.
   *
   * @param {Reported} reported
   * @param {Message} message
   * @param {string} link
   */
  async #askedByLink(reported, message, link) {
    const { links } = this.#context;
    try {
      const observer = message.type === "read" ? message.from : observerOf(message);
      if (!(await links.speaksFor(link, message.from, observer))) {
        const why = "where the observer lives is not known here; ask by the node";
        throw new BadMessageError(why, CODES.UNAUTHENTICATED);
      }
      this.#decide(reported, message, link);
    } catch (error) {
      if (!(error instanceof BadMessageError)) throw error;
      this.#context.refuse(message, error.code, error.message);
    }
  }

  /**
   * @param {Reported} reported
   * @param {Message} request
   * @param {string | null} link
   */
  #decide(reported, request, link) {
    const { url } = reported;
    const { type, body, from: manager } = request;
    if (type === "read") return this.#read(reported, request);
    if (type !== "subscribe" && type !== "unsubscribe") {
      throw new BadMessageError("an object does not do this");
    }
    const observer = observerOf(request);
    if (type === "unsubscribe") {
      this.#run(reported, (core) => core.unsubscribe(observer, manager));
      return this.#context.answer(request, CODES.OK);
    }
    this.#routes.asked(url, runtimeOf(manager), link);
    const version = Number.isInteger(body.version) ? Number(body.version) : null;
    const lease = body.renews === true ? constants.LEASE : null;
    this.#run(reported, (core, now) => core.subscribe(request, observer, lease, version, now));
  }

  /**
   * @param {Reported} reported
   * @param {Message} request
   */
  #read({ core, whole, history }, request) {
    const { attribute, childrenAfter: after } = request.body;
    if (core.isDeleted) throw new BadMessageError("no such object", CODES.NOT_FOUND);
    if (!core.mayRead(request.from)) throw new BadMessageError("not an observer", CODES.UNAUTHENTICATED);
    if (attribute === undefined) {
      if (after !== undefined && !(Number.isInteger(after) && Number(after) >= 0)) {
        throw new BadMessageError("childrenAfter is no number of a child");
      }
      const isPage = after !== undefined && history.children.window !== null;
      const value = isPage ? { childrenObjects: history.page(Number(after)) } : whole;
      return this.#context.answer(request, CODES.OK, { value });
    }
    const value = valueAt(whole.data, textIn(request.body, "attribute"));
    if (value === undefined) throw new BadMessageError(`the object has no ${attribute}`, CODES.NOT_FOUND);
    this.#context.answer(request, CODES.OK, { value, version: whole.version });
  }

  /**
   * @param {Reported} reported
   * @param {Message} request
   */
  #askedObservers({ core, listed }, request) {
    if (request.type !== "read") throw new BadMessageError("observers are read, and no more");
    if (request.from !== core.snapshot.reporter) {
      throw new BadMessageError("only the reporter may", CODES.UNAUTHENTICATED);
    }
    this.#context.answer(request, CODES.OK, { value: { version: listed ?? 0, observers: core.observers } });
  }

  // ---- what the core asks for

  /**
   * @param {Reported} reported
   * @param {(core: ReporterCore, now: number) => void} call
   */
  #run(reported, call) {
    reported.host.run(call);
    this.#schedule();
  }

  /**
   * @param {Reported} reported
   * @returns {import("./reporter.js").ReporterPort}
   */
  #portOf(reported) {
    const { url } = reported;
    const context = this.#context;
    return {
      step: (step) => context.trace.step("sm", step),
      row: ({ op, table, val, writer }) => {
        context.trace.row("sm", op, table, url, val, writer);
        this.#listed(reported, op, val);
      },
      ask: (...asked) => void this.#askReporter(reported, ...asked),
      grant: (requests, terms, isWhole) => {
        if (isWhole) {
          this.#repeats.observed(url, context.now);
          this.#signs.observed(url, context.now);
          reported.wasObserved = true;
        }
        const { whole: value } = reported;
        for (const request of requests) context.answer(request, CODES.OK, isWhole ? { value, ...terms } : terms);
      },
      deny: (requests, code, why) => requests.forEach((one) => context.refuse(one, code, why)),
      invite: (request, observer) => this.#inviteObserver(url, request, observer),
      relay: (requests, source, code, why) => {
        for (const request of requests) context.answer(request, code, { source, description: why || undefined });
      },
      cutOff: (...cut) => this.#cutOff(url, ...cut),
      publish: (change) => {
        this.#written(reported);
        this.#repeats.published(url, change, isOfPart(reported.core.snapshot.reporter), context.now);
        this.#publish(reported, change);
      },
      end: (runtimes) => {
        context.trace.record("sm", { k: "obj", op: "del", key: url, by: reported.core.snapshot.reporter });
        if (!runtimes.length) return;
        const terms = { awaited: runtimes, direct: this.#routes.direct(url) };
        context.port.publish("delete", `${url}/changes`, {}, `${url}/subscription`, terms);
      },
      vacate: () => void this.#remove(reported),
    };
  }

  /**
   * Send an invitation of the reporter to an observer.
   *
   * @param {string} url
   * @param {Message} request
   * @param {string} observer
   */
  #inviteObserver(url, { from: source, identity, body: { schema = "", value = {} } }, observer) {
    const { bus, port } = this.#context;
    const from = `${url}/subscription`;
    const body = { source, schema, value };
    port.post({ id: bus.nextId(from), type: "create", from, to: observer, body, ...(identity ? { identity } : {}) });
  }

  /** @param {Reported} reported */
  #written({ url, core }) {
    const { version, reporter: by, data } = core.snapshot;
    const { trace } = this.#context;
    const digest = trace.keeps ? valueDigest(data) : undefined;
    trace.record("sm", { k: "obj", op: "write", key: url, version, by, digest });
  }

  /**
   * @param {Reported} reported
   * @param {import("./copy.js").Published} change
   */
  #publish({ url, core, wasObserved }, change) {
    const { runtimes } = core;
    if (!runtimes.length && !wasObserved) return;
    const terms = { awaited: runtimes, direct: this.#routes.direct(url) };
    this.#context.port.publish("update", `${url}/changes`, /** @type {JsonObject} */ (change), url, terms);
  }

  /**
   * Notify the reporter that an observer has joined or left.
   *
   * @param {Reported} reported
   * @param {"add" | "del"} op
   * @param {string} observer
   */
  #listed(reported, op, observer) {
    if (reported.listed === null || reported.core.isDeleted) return;
    reported.listed += 1;
    const { url, listed: version } = reported;
    const body = { value: [observer], operation: op === "add" ? "add" : "remove", version, attributeType: "array" };
    this.#context.port.publish("update", `${url}/observers`, body, url);
  }

  /**
   * Forward an observer's request for a subscription to the reporter, which decides.
   *
   * @param {Reported} reported
   * @param {Message} request
   * @param {string} observer
   * @param {number} question
   */
  async #askReporter(reported, { id, identity }, observer, question) {
    const { url, core } = reported;
    const { port, bus } = this.#context;
    const message = { id, type: "subscribe", from: observer, to: url };
    const answer = await port.request({
      id: bus.nextId(url),
      type: "forward",
      from: url,
      to: core.snapshot.reporter,
      body: { message },
      ...(identity ? { identity } : {}),
    });
    if (this.#all.get(url) !== reported) return;
    if (isSuccess(answer)) return this.#run(reported, (core, now) => core.accept(observer, question, now));
    const why = reasonIn(answer) || "the reporter refuses";
    this.#run(reported, (core) => core.refuse(observer, why, question));
  }

  /**
   * Stop delivery to an observer, without its cooperation.
   *
   * @param {string} url
   * @param {string} observer
   * @param {string} manager
   * @param {boolean} isOver whether it may subscribe again
   */
  #cutOff(url, observer, manager, isOver) {
    const { port, runtime: own, domain } = this.#context;
    const runtime = manager ? runtimeOf(manager) : undefined;
    if (runtime !== own) {
      const body = { resources: [`${url}/changes`], observer, runtime, expired: isOver || undefined };
      void port.ask("unsubscribe", subscriptionManager(domain), body);
    }
    if (!manager) return;
    const body = { resource: url, observer: isOver ? undefined : observer };
    void port.ask(isOver ? "subscribe" : "unsubscribe", manager, body, `${url}/subscription`);
  }

  /** @param {Reported} reported */
  async #remove(reported) {
    const { url, core } = reported;
    const { reporter } = core.snapshot;
    const { bus, port, registry, tools } = this.#context;
    for (const address of [...childrenOf(url), `${url}/observers`]) this.#context.unlisten(address);
    this.#context.unfollow(`${url}/observers`, reporter);
    this.#signs.forget(url);
    this.#removals.set(url, Infinity);
    await this.#path("unsubscribe", url);
    await registry.unregister(url);
    for (const address of [`${url}/subscription`, url]) this.#context.unlisten(address);
    await registry.free([url]);
    this.#all.delete(url);
    this.#routes.left(url, []);
    this.#repeats.forget(url);
    if (reported.deleting) this.#context.answer(reported.deleting, CODES.OK);
    reported.leave();
    bus.revoke(port.url, url);
    for (const sender of [url, `${url}/subscription`]) tools.ids.forget(sender);
    reported.gone();
  }

  // ---- links

  /** @param {Reported} reported */
  #settle({ url, core }) {
    if (!this.#routes.isUsed(url)) return;
    const active = core.runtimes;
    this.#routes.left(url, active, core.asking);
    for (const runtime of active) this.#routes.counts(url, runtime);
  }

  linksChanged() {
    const runtimes = [...this.#all.values()].flatMap((one) => [...one.core.runtimes, ...one.core.asking]);
    for (const runtime of new Set(runtimes)) this.#routes.linkIs(runtime, this.#context.links.linkTo(runtime));
  }

  // ---- children

  /**
   * @param {Reported} reported
   * @param {Message} message
   */
  #childSaid(reported, message) {
    const { url, core, children, history } = reported;
    const context = this.#context;
    const { reporter } = core.snapshot;
    // Its own sign, which it does not need.
    if (message.from === url) return;
    const op = readOp(message);
    const isByLink = isLink(viaOf(message).at(-1) ?? "");
    const isIn = op && (op.creator === reporter || core.observers.includes(op.creator));
    let refusal = null;
    if (!op) refusal = { code: CODES.FORBIDDEN, why: "not the child reporter: only its creator writes" };
    else if (core.isDeleted) refusal = { code: CODES.NOT_FOUND, why: "no such object" };
    else if (!isIn) refusal = { code: CODES.FORBIDDEN, why: "only observers and the reporter write children" };
    const isThere = Boolean(op && children.kept.has(op.name));
    const taken = op && !refusal ? history.take(op, context.now) : false;
    if (typeof taken === "object") refusal = taken;
    if (refusal) {
      if (isRequest(message)) {
        return context.answer(message, refusal.code, { description: refusal.why, source: context.runtime });
      }
      context.tools.counters.drop(DROPS.DENIED, "sm", message);
      return context.trace.message("sm", "drop", message, { reason: DROPS.DENIED });
    }
    if (op && taken === true) {
      const done = { create: isThere ? "upd" : "add", update: "upd", delete: "del" }[op.act];
      const { version, creator: by } = op;
      context.trace.record("sm", { k: "obj", op: done, key: `${url}|${op.name}`, version, by });
      this.#traceRemoved(url, history.trim(context.now));
      this.#signs.begin(url, context.now, constants.REPEAT_LAST);
      this.#reportChild(reported, message, isByLink);
    }
    if (!isByLink && message.from !== reporter) context.bus.handOn(message, reporter);
    if (isRequest(message)) context.answer(message, CODES.OK, { source: reporter });
    this.#reportRemoved(reported);
    this.#schedule();
  }

  /**
   * Delete a child of any creator for the reporter, and report it at once.
   *
   * @param {Message} request
   * @param {string} name
   */
  #deleteChild(request, name) {
    const reported = this.#named(request.body);
    const { url, core, history } = reported;
    const version = history.children.kept.get(name)?.version;
    core.check(request.from);
    if (!history.end(name, this.#context.now)) throw new BadMessageError("no such child", CODES.NOT_FOUND);
    this.#traceRemoved(url, [name], version);
    this.#sendSign(reported);
    this.#context.answer(request, CODES.OK);
  }

  /**
   * Trace that the object itself has removed children.
   *
   * @param {string} url
   * @param {string[]} names
   * @param {number} [version]
   */
  #traceRemoved(url, names, version) {
    for (const name of names) this.#context.trace.record("sm", { k: "obj", op: "del", key: `${url}|${name}`, version, by: url });
  }

  /** @param {Reported} reported */
  #reportRemoved(reported) {
    while (reported.history.isReportDue(this.#context.now)) this.#sendSign(reported);
    this.#removals.set(reported.url, reported.history.deadline);
  }

  /**
   * Send a checksum of the children, with the names of removed ones.
   *
   * @param {Reported} reported
   */
  #sendSign(reported) {
    const body = /** @type {JsonObject} */ (reported.history.report());
    if ("ended" in body) return this.#reportToAll(reported, "update", body);
    for (const to of childrenOf(reported.url)) this.#context.port.publish("update", to, body, reported.url);
  }

  /**
   * Send a report about children to all observers, and to the reporter, which does not observe.
   *
   * @param {Reported} reported
   * @param {"update" | "delete"} type
   * @param {JsonObject} body
   */
  #reportToAll({ url, core }, type, body) {
    const { bus, port } = this.#context;
    for (const to of childrenOf(url)) {
      const report = /** @type {Message} */ ({ id: bus.nextId(url), type, from: url, to, body });
      bus.submit(report, port.url);
      bus.handOn(report, core.snapshot.reporter);
    }
  }

  /**
   * Report an operation on a child to observers: to all if it came by a link, else to those with links.
   *
   * @param {Reported} reported
   * @param {Message} message
   * @param {boolean} isForAll
   */
  #reportChild(reported, message, isForAll) {
    const { url, children } = reported;
    const direct = this.#routes.direct(url);
    const { resource } = message.body;
    const kept = children.kept.get(textOf(resource));
    const body = /** @type {JsonObject} */ ({ resource, version: message.id, value: kept?.value });
    const type = kept ? "update" : "delete";
    if (isForAll) return this.#reportToAll(reported, type, body);
    if (!direct.length) return;
    for (const to of childrenOf(url)) this.#context.port.publish(type, to, body, url, { awaited: direct, direct });
  }

  // ---- time and the end

  #schedule() {
    this.#alarm.set(Math.min(this.#repeats.deadline, this.#signs.deadline, this.#removals.deadline));
  }

  #timeOver() {
    const { now } = this.#context;
    /** @param {string} url */
    const isObserved = (url) => {
      const core = this.#all.get(url)?.core;
      return core !== undefined && !core.isDeleted && core.observers.length > 0;
    };
    const sign = this.#signs.due(now, isObserved);
    if (sign) this.#sendSign(/** @type {Reported} */ (this.#all.get(sign)));
    for (const url of this.#removals.due(now)) {
      const reported = this.#all.get(url);
      if (!reported || reported.core.isDeleted) continue;
      this.#traceRemoved(url, reported.history.trim(now));
      this.#reportRemoved(reported);
    }
    const repeated = this.#repeats.repeated(now, isObserved);
    if (repeated) this.#publish(/** @type {Reported} */ (this.#all.get(repeated.url)), repeated.change);
    this.#schedule();
  }

  /**
   * Delete the objects that a component reports, also by addresses below its own.
   *
   * @param {string} reporter
   */
  async leave(reporter) {
    const own = [...this.#all.values()].filter((one) => isBelow(one.core.snapshot.reporter, reporter));
    for (const reported of own) {
      if (!reported.core.isDeleted) this.#run(reported, (core) => core.delete(core.snapshot.reporter));
    }
    await Promise.all(own.map((one) => one.end));
  }

  /** End all subscriptions and invitations without sending messages. */
  letGo() {
    const step = (/** @type {import("../machine.js").Step} */ one) => this.#context.trace.step("sm", one);
    const silent = new Proxy(/** @type {any} */ ({ step }), { get: (port, name) => port[name] ?? (() => {}) });
    for (const { host } of this.#all.values()) {
      host.port = silent;
      host.run((core) => {
        if (!core.isDeleted) core.delete(core.snapshot.reporter);
        core.notified();
      });
    }
    this.#alarm.set(Infinity);
  }
}

/**
 * Read the operation in a message about a child of its sender.
 *
 * @param {Message} message
 */
export function readOp(message) {
  const op = opIn(message);
  if (op?.removes) checkPath(op.removes);
  return op;
}
