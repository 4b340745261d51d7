/** The observing side of a sync manager: subscriptions of components to data objects, and their
 * routes (`actors/runtime/sync/observer.py`). */

import { domainOf, isBelow } from "../address.js";
import { Alarm, sleep } from "../clock.js";
import { BUSY_PAUSE, CODES, LEAVE_TRIES, READ_PAUSE, RECONNECT_TRIES, REPEAT_LAST } from "../constants.js";
import { isObject } from "../json.js";
import { address, codeOf, isSuccess, reasonIn, refuse } from "../message.js";
import { childrenOf, publishedOf, RESOURCES } from "./children.js";
import { RenewalsCore } from "./leases.js";
import { Held, textIn } from "./context.js";
import { ObserverRoute } from "./routes.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */

/** An answer to a subscription, and its route; `barred`: the link by which it was refused.
 * @typedef {{answer: Message, link: string | null, barred: string | null}} Opened */

/** Reply codes after which a subscription is repeated: the reporter may be disconnected for now. */
const LATER = new Set([CODES.NOT_FOUND, CODES.TIMEOUT, CODES.INTERNAL, CODES.UNAVAILABLE]);
/** Reply codes that routers send instead of the receiver of a request. */
const UNHEARD = new Set([CODES.TIMEOUT, CODES.UNAVAILABLE, CODES.BAD_BACKEND, CODES.INTERNAL]);

/**
 * @param {Set<number>} codes
 * @param {Message} answer
 */
const isOneOf = (codes, answer) => codes.has(codeOf(answer));

/** @param {Message} answer */
const isDecided = (answer) => isSuccess(answer) || codeOf(answer) === CODES.FORBIDDEN;

/**
 * Return the answer to an observer that left before it was subscribed.
 *
 * @param {Message} answer what came instead
 * @returns {Message}
 */
const goneInstead = (answer) => {
  const description = "the observer left before it was subscribed";
  return { ...answer, body: { code: CODES.GONE, description } };
};

/** One data object that components of this runtime observe. */
class Observed extends Held {
  /** Observers, with the ids of their requests. @type {Map<string, number>} */
  observers = new Map();
  /** Observers whose requests are not answered yet. @type {Set<string>} */
  asking = new Set();
  leaving = 0;
  isClosing = false;
  /** The newest version that came here; 0: none. */
  version = 0;
  isRenewed = false;
  /** Whether the node has lost the subscription again meanwhile. */
  isForgotten = false;
  isDeleted = false;
  hasPath = false;
  /** The link by which changes may come; null: none. @type {string | null} */
  heardBy = null;
  /** Requests that wait until the subscription at the node is ended. @type {Message[]} */
  waiting = [];

  /**
   * @param {string} url
   * @param {() => void} leave gives its room back
   * @param {(there: Observed, link: string | null) => void} moveTo
   */
  constructor(url, leave, moveTo) {
    super(url, leave);
    this.route = new ObserverRoute((link) => moveTo(this, link));
  }

  /** Whether links are followed for it; the description of a link never comes by one. */
  get isOfLink() {
    return this.url.startsWith("connection:");
  }

  /**
   * @param {string} observer
   * @param {number} id
   */
  isAsking(observer, id) {
    return this.asking.has(`${observer} ${id}`);
  }
}

/** All data objects that this runtime observes; observers of one object share a subscription. */
export class ObservedObjects {
  #context;
  #reporterOf;
  /** @type {Map<string, Observed>} */
  #all = new Map();
  #renewals = new RenewalsCore();
  #alarm;

  /**
   * @param {import("./context.js").SyncContext} context
   * @param {(url: string) => string | null} reporterOf the local reporter of an object
   */
  constructor(context, reporterOf) {
    this.#context = context;
    this.#reporterOf = reporterOf;
    this.#alarm = new Alarm(context.tools.clock, () => this.#timeOver());
  }

  get observers() {
    return [...this.#all.values()].flatMap((one) => [...one.observers.keys()]);
  }

  /** @param {string} address of changes */
  observed(address) {
    return address.endsWith("/changes") ? this.#all.get(address.slice(0, -"/changes".length)) : undefined;
  }

  // ---- begin

  /** @param {Message} request */
  observe(request) {
    const url = address(request.body.resource, "resource");
    const observed = this.#all.get(url);
    const resources = childrenOf(url).length && request.body.p2p !== true ? [RESOURCES] : [];
    this.#context.answer(request, CODES.TRYING, { resources });
    if (observed?.isClosing) observed.waiting.push(request);
    else this.#observe(request, url);
  }

  /**
   * @param {Message} request
   * @param {string} url
   */
  #observe(request, url) {
    const { from, id, body } = request;
    const isFirst = !this.#all.has(url);
    const observed = this.#all.get(url) ?? new Observed(url, this.#context.roomFor(from), (...move) => void this.#moveTo(...move));
    this.#all.set(url, observed);
    observed.observers.set(from, id);
    observed.asking.add(`${from} ${id}`);
    if (isFirst) {
      // It answers from there when the object is deleted.
      this.#context.bus.grant(this.#context.port.url, `${url}/changes`);
      this.#context.listen(`${url}/changes`);
      // For objects of this runtime the sync manager delivers changes, for others the node does.
      if (this.#reporterOf(url) === null) this.#follow(observed, from);
    }
    const { p2p } = body;
    observed.route.prefer(from, observed.isOfLink ? false : typeof p2p === "boolean" ? p2p : null);
    if (observed.route.mayUseLinks) this.#context.links.want(url);
    void this.#begin(request, observed, isFirst);
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   */
  #follow({ url }, observer) {
    const children = this.#reporterOf(url) === observer ? [] : childrenOf(url);
    for (const address of [`${url}/changes`, ...children]) this.#context.follow(address, observer);
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   */
  #unfollow({ url }, observer) {
    for (const address of publishedOf(url)) this.#context.unfollow(address, observer);
  }

  /**
   * @param {Message} request
   * @param {Observed} observed
   * @param {boolean} isFirst
   */
  async #begin(request, observed, isFirst) {
    const { from } = request;
    /** @type {Opened} */
    let opened;
    if (isFirst) opened = await this.#open(observed, from);
    else if (observed.observers.has(from)) {
      // A renewal is no new subscription: an expelled observer does not come back so.
      const version = request.body.resume === true ? observed.version : 0;
      opened = await this.#join(observed, from, version);
    } else {
      const answer = refuse(request, CODES.GONE, "the observer left before it was subscribed");
      opened = { answer, link: null, barred: null };
    }
    this.#done(request, observed, opened, isFirst);
  }

  /**
   * Subscribe the first observer at the reporter: by the live link if there is one, else the node.
   *
   * @param {Observed} observed
   * @param {string} observer
   * @returns {Promise<Opened>}
   */
  async #open(observed, observer) {
    const link = observed.route.mayUseLinks ? this.#context.links.linkTo(observed.url) : null;
    if (link !== null) {
      // What it grants may come before the answer.
      observed.heardBy = link;
      const answer = await this.#ask(observed, "subscribe", { source: observer }, link);
      if (isDecided(answer)) return { answer, link, barred: null };
      // Closed meanwhile: nothing would take a path back.
      if (this.#all.get(observed.url) !== observed) return { answer: goneInstead(answer), link: null, barred: link };
    }
    observed.heardBy = null;
    let answer = await this.#setPath(observed);
    if (!observed.route.isWantedBy(observer)) answer = goneInstead(answer);
    if (isSuccess(answer)) answer = await this.#ask(observed, "subscribe", { source: observer });
    return { answer, link: null, barred: link };
  }

  /**
   * Subscribe one more observer at the reporter, by the route in use.
   *
   * @param {Observed} observed
   * @param {string} observer
   * @param {number} version of what came here, if it observes already, and goes on; or 0
   * @returns {Promise<Opened>}
   */
  async #join(observed, observer, version) {
    const body = { source: observer, version: version || undefined };
    const { used } = observed.route;
    if (used !== null) {
      const answer = await this.#ask(observed, "subscribe", body, used);
      if (isDecided(answer) || !observed.route.isWantedBy(observer)) return { answer, link: used, barred: null };
    }
    return { answer: await this.#ask(observed, "subscribe", body), link: null, barred: null };
  }

  /**
   * @param {Observed} observed
   * @param {"subscribe" | "unsubscribe"} type
   * @param {JsonObject} body
   * @param {string} [link] the only one that it may go by
   */
  #ask({ url }, type, body, link) {
    const renews = type === "subscribe" ? true : undefined;
    const { port } = this.#context;
    return port.ask(type, `${url}/subscription`, { ...body, renews }, port.url, { link });
  }

  /**
   * @param {Message} request
   * @param {Observed} observed
   * @param {Opened} opened
   * @param {boolean} isFirst
   */
  #done(request, observed, { answer, link, barred }, isFirst) {
    const { from, id } = request;
    observed.asking.delete(`${from} ${id}`);
    if (isFirst) observed.route.opened(link, barred);
    else observed.route.asked(link);
    if (isFirst) this.#linkIs(observed);
    const asked = observed.observers.get(from);
    if (isSuccess(answer)) {
      this.#letIn(observed, from);
      if (asked === id) this.#granted(observed, from, answer);
      const p2p = link === null ? undefined : true;
      return this.#context.answer(request, CODES.OK, { value: answer.body.value, p2p });
    }
    const isTimeout = codeOf(answer) === CODES.TIMEOUT;
    // The reporter's yes may be on its way: it must not stay.
    if (isTimeout && (asked ?? id) === id) void this.#ask(observed, "unsubscribe", { source: from });
    if (asked === id) this.#takeOff(observed, from);
    this.#closeIfLeft(observed, null);
    if (observed.observers.size && observed.route.used === null) void this.#renew(observed);
    this.#context.answer(request, codeOf(answer), { description: reasonIn(answer) || undefined });
  }

  /**
   * Begin to deliver changes to an observer, when its subscription is granted.
   *
   * @param {Observed} observed
   * @param {string} observer
   */
  #letIn(observed, observer) {
    for (const [other, id] of observed.observers) if (observed.isAsking(other, id)) this.#unfollow(observed, other);
    if (observed.observers.has(observer)) this.#follow(observed, observer);
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   * @param {Message} answer
   */
  #granted(observed, observer, { body }) {
    const { value, lease } = body;
    const life = typeof lease === "number" && lease > 0 ? lease : Infinity;
    this.#renewals.granted(`${observed.url}|${observer}`, life, this.#context.now, Math.random());
    this.#alarm.set(this.#renewals.deadline);
    this.#came(observed, value);
  }

  /**
   * @param {Observed} observed
   * @param {Json | undefined} value
   */
  #came(observed, value) {
    const version = isObject(value) ? value.version : null;
    if (Number.isInteger(version)) observed.version = Math.max(observed.version, Number(version));
  }

  /**
   * @param {Observed} observed
   * @param {Message} event
   */
  changed(observed, { from, body }) {
    if (from === observed.url) this.#came(observed, body);
  }

  /**
   * Send an observer the present value of an object, as it may have missed changes.
   *
   * @param {string} url
   * @param {string} observer
   * @param {Json | undefined} value
   */
  #show(url, observer, value) {
    this.#context.port.publish("update", observer, { resource: url, value });
  }

  // ---- the path at the node

  /** @param {Observed} observed */
  #setPath(observed) {
    observed.hasPath = true;
    return this.#context.path("subscribe", domainOf(observed.url), publishedOf(observed.url));
  }

  /** Repeat all subscriptions at the node, which has lost them. */
  renew() {
    for (const observed of this.#all.values()) {
      if (observed.isClosing || !observed.hasPath) continue;
      observed.isForgotten = true;
      void this.#renew(observed);
    }
  }

  /**
   * Repeat the subscriptions of an object at the node and at its reporter, until both succeed or a
   * link is used; no changes arrive before that.
   *
   * @param {Observed} observed
   */
  async #renew(observed) {
    if (observed.isRenewed) return;
    observed.isRenewed = true;
    let isKnown = false;
    do {
      observed.isForgotten = false;
      isKnown = await this.#isRenewedNow(observed);
    } while (observed.isForgotten);
    observed.isRenewed = false;
    if (!isKnown) void this.#findAgain(observed);
  }

  /** @param {Observed} observed */
  async #findAgain(observed) {
    await sleep(this.#context.tools.clock, REPEAT_LAST);
    const isWanted = this.#all.get(observed.url) === observed && !observed.isClosing && observed.route.used === null;
    if (isWanted && !observed.isRenewed) void this.#renew(observed);
  }

  /** @param {Observed} observed */
  async #isRenewedNow(observed) {
    let pause = READ_PAUSE;
    let isSet = false;
    for (let tries = 0; tries < RECONNECT_TRIES && !observed.isForgotten; tries += 1) {
      isSet = isSet || observed.isClosing || !isOneOf(LATER, await this.#setPath(observed));
      // Without a path the owner is asked at last: its answer brings what was missed so far.
      const isLast = tries === RECONNECT_TRIES - 1;
      if ((isSet || isLast) && (await this.#isKnownAgain(observed)) && isSet) return true;
      await sleep(this.#context.tools.clock, pause);
      pause *= 2;
    }
    return false;
  }

  /** @param {Observed} observed */
  async #isKnownAgain(observed) {
    for (const [observer, id] of [...observed.observers]) {
      if (observed.isClosing || !observed.observers.has(observer)) continue;
      const answer = await this.#ask(observed, "subscribe", { source: observer });
      if (isOneOf(LATER, answer)) return false;
      if (isSuccess(answer)) this.#show(observed.url, observer, answer.body.value);
      else if (codeOf(answer) === CODES.FORBIDDEN) this.#refusedAgain(observed, observer, id);
    }
    return true;
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   * @param {number} id
   */
  #refusedAgain(observed, observer, id) {
    if (observed.observers.get(observer) !== id || observed.isAsking(observer, id)) return;
    this.#takeOff(observed, observer);
    void this.#context.port.ask("unsubscribe", observer, { resource: observed.url });
    this.#closeIfLeft(observed, null);
  }

  // ---- time

  #timeOver() {
    for (const key of this.#renewals.due(this.#context.now)) {
      const [url, observer] = key.split("|");
      const observed = this.#all.get(url);
      const id = observed?.observers.get(observer);
      if (observed && id !== undefined) void this.#renewLease(observed, observer, id);
    }
    this.#alarm.set(this.#renewals.deadline);
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   * @param {number} id
   */
  async #renewLease(observed, observer, id) {
    const { answer, link } = await this.#join(observed, observer, observed.version);
    if (this.#all.get(observed.url) !== observed || observed.observers.get(observer) !== id) return;
    const { value, renewed } = answer.body;
    if (codeOf(answer) === CODES.FORBIDDEN) this.#refusedAgain(observed, observer, id);
    else if (!isSuccess(answer)) {
      this.#renewals.unanswered(`${observed.url}|${observer}`, this.#context.now, Math.random());
    } else {
      observed.route.asked(link);
      this.#granted(observed, observer, answer);
      // The lease was over already: the node has removed the path.
      if (renewed !== true && observed.route.used === null) void this.#renew(observed);
      if (value !== undefined) this.#show(observed.url, observer, value);
    }
    this.#alarm.set(this.#renewals.deadline);
  }

  // ---- messages from the reporter

  /** @param {Message} request */
  back(request) {
    const observed = this.#all.get(textIn(request.body, "resource"));
    const observers = observed && !observed.isClosing ? [...observed.observers.keys()] : [];
    this.#context.answer(request, CODES.OK, { value: observers });
    if (observed && observers.length) void this.#renew(observed);
  }

  /** @param {Message} request */
  expelled(request) {
    const observed = this.#all.get(textIn(request.body, "resource"));
    const observer = textIn(request.body, "observer");
    this.#context.answer(request, CODES.OK);
    const id = observed?.observers.get(observer);
    // A message of the reporter may be lost; this one has come.
    if (observed && id !== undefined) this.#refusedAgain(observed, observer, id);
  }

  /**
   * @param {Observed} observed
   * @param {Message} event
   */
  deleted(observed, event) {
    if (event.from !== `${observed.url}/subscription`) {
      return this.#context.refuse(event, CODES.FORBIDDEN, "only its reporter deletes an object");
    }
    this.#context.answer(event, CODES.OK, { source: this.#context.runtime });
    for (const observer of [...observed.observers.keys()]) this.#takeOff(observed, observer);
    observed.isDeleted = true;
    this.#closeIfLeft(observed, null);
  }

  // ---- end

  /** @param {Message} request */
  leave(request) {
    const observed = this.#all.get(textIn(request.body, "resource"));
    if (observed?.observers.has(request.from)) void this.#letGo(observed, request.from, request);
    else this.#context.answer(request, CODES.OK);
  }

  /** @param {string} component */
  async leaveAll(component) {
    /** @type {Promise<void>[]} */
    const ends = [];
    for (const observed of this.#all.values()) {
      for (const observer of observed.observers.keys()) {
        if (!isBelow(observer, component)) continue;
        void this.#letGo(observed, observer, null);
        ends.push(observed.end);
      }
    }
    await Promise.all(ends);
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   * @param {Message | null} request
   */
  async #letGo(observed, observer, request) {
    this.#takeOff(observed, observer);
    observed.leaving += 1;
    let answer = await this.#leave(observed, observer);
    for (let tries = 1; tries < LEAVE_TRIES && codeOf(answer) === CODES.UNAVAILABLE; tries += 1) {
      await sleep(this.#context.tools.clock, BUSY_PAUSE);
      if (observed.observers.has(observer)) break;
      answer = await this.#leave(observed, observer);
    }
    observed.leaving -= 1;
    this.#closeIfLeft(observed, request);
    if (observed.observers.size) observed.gone();
  }

  /**
   * @param {Observed} observed
   * @param {string} observer
   */
  async #leave(observed, observer) {
    const body = { source: observer };
    const { used } = observed.route;
    if (used !== null) {
      const answer = await this.#ask(observed, "unsubscribe", body, used);
      const isLeft = !isOneOf(UNHEARD, answer) && codeOf(answer) !== CODES.UNAUTHENTICATED;
      // A leave must not take back that it observes again.
      if (isLeft || observed.observers.has(observer)) return answer;
    }
    return this.#ask(observed, "unsubscribe", body);
  }

  /**
   * Stop the delivery of changes to one observer of an object.
   *
   * @param {Observed} observed
   * @param {string} observer
   */
  #takeOff(observed, observer) {
    observed.observers.delete(observer);
    this.#renewals.ended(`${observed.url}|${observer}`);
    observed.route.left(observer);
    this.#unfollow(observed, observer);
  }

  /**
   * @param {Observed} observed
   * @param {Message | null} request
   */
  #closeIfLeft(observed, request) {
    if (!observed.observers.size && !observed.leaving && !observed.isClosing) {
      observed.isClosing = true;
      void this.#close(observed, request);
    } else if (request) this.#context.answer(request, CODES.OK);
  }

  /**
   * @param {Observed} observed
   * @param {Message | null} request
   */
  async #close(observed, request) {
    const { url } = observed;
    this.#context.unlisten(`${url}/changes`);
    this.#context.bus.revoke(this.#context.port.url, `${url}/changes`);
    await this.#closePath(observed);
    this.#all.delete(url);
    observed.leave();
    observed.gone();
    if (request) this.#context.answer(request, CODES.OK);
    for (const waiting of observed.waiting) this.#observe(waiting, url);
  }

  /**
   * End the subscription at the node, except for children if the object is reported here.
   *
   * @param {Observed} observed
   */
  async #closePath(observed) {
    if (!observed.hasPath) return;
    observed.hasPath = false;
    const changes = [`${observed.url}/changes`];
    const children = this.#reporterOf(observed.url) === null ? childrenOf(observed.url) : [];
    // Children have died with their object, and are nothing of it any more.
    for (const paths of observed.isDeleted ? [children, changes] : [[...changes, ...children]]) {
      if (paths.length) await this.#context.path("unsubscribe", domainOf(observed.url), paths);
    }
  }

  // ---- links

  /**
   * Return the link by which an object is observed; null: by the node, or not observed.
   *
   * @param {string} url
   */
  linkOf(url) {
    return this.#all.get(url)?.route.used ?? null;
  }

  /** @param {string} url */
  heardBy(url) {
    return this.#all.get(url)?.heardBy ?? null;
  }

  linksChanged() {
    for (const observed of this.#all.values()) this.#linkIs(observed);
  }

  /** @param {Observed} observed */
  #linkIs(observed) {
    if (!observed.isOfLink) observed.route.linkIs(this.#context.links.linkTo(observed.url));
  }

  /**
   * @param {Observed} observed
   * @param {string | null} link null: the node
   */
  async #moveTo(observed, link) {
    const how = link === null ? await this.#toNode(observed) : await this.#toLink(observed, link);
    if (this.#all.get(observed.url) === observed) observed.route.moved(link, how);
  }

  /**
   * @param {Observed} observed
   * @returns {Promise<import("./routes.js").Moving>}
   */
  async #toNode(observed) {
    await this.#renew(observed);
    observed.heardBy = null;
    return "done";
  }

  /**
   * Subscribe one observer by a link, so that the link carries all changes for this runtime.
   *
   * @param {Observed} observed
   * @param {string} link
   * @returns {Promise<import("./routes.js").Moving>}
   */
  async #toLink(observed, link) {
    const observer = observed.route.anybody;
    if (observer === undefined) return "refused";
    observed.heardBy = link;
    const answer = await this.#ask(observed, "subscribe", { source: observer }, link);
    if (!isSuccess(answer)) return isOneOf(UNHEARD, answer) ? "unsure" : "refused";
    if (observed.hasPath) {
      // What went by the node before may still come; a gap would only be read.
      await sleep(this.#context.tools.clock, READ_PAUSE);
      if (this.#all.get(observed.url) === observed) await this.#closePath(observed);
    }
    return "done";
  }
}
