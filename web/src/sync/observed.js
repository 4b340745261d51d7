/** The objects that components of this runtime observe (`actors/runtime/sync/observer.py`). */

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

/** By which way an observer was answered; `barred`: the link by which it was not let in.
 * @typedef {{answer: Message, link: string | null, barred: string | null}} Opened */

/** Answers after which an owner is asked again: it may not be back yet. */
const LATER = new Set([CODES.NOT_FOUND, CODES.TIMEOUT, CODES.INTERNAL, CODES.UNAVAILABLE]);
/** Answers that come instead of the component that is addressed. */
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

/** One object that is observed here. */
class Observed extends Held {
  /** Observers, with the ids of their requests. @type {Map<string, number>} */
  observers = new Map();
  /** Those of these requests that are not answered. @type {Set<string>} */
  asking = new Set();
  leaving = 0;
  isClosing = false;
  /** The newest version that came here; 0: none. */
  version = 0;
  isRenewed = false;
  /** Whether the node has forgotten the path again meanwhile. */
  isForgotten = false;
  isDeleted = false;
  hasPath = false;
  /** The link by which changes may come; null: none. @type {string | null} */
  heardBy = null;
  /** Requests that wait for the path to be closed. @type {Message[]} */
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

/** The observers' end of every object; one path serves all observers of an object. */
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
    const there = this.#all.get(url);
    const resources = childrenOf(url).length && request.body.p2p !== true ? [RESOURCES] : [];
    this.#context.answer(request, CODES.TRYING, { resources });
    if (there?.isClosing) there.waiting.push(request);
    else this.#observe(request, url);
  }

  /**
   * @param {Message} request
   * @param {string} url
   */
  #observe(request, url) {
    const { from, id, body } = request;
    const isFirst = !this.#all.has(url);
    const there = this.#all.get(url) ?? new Observed(url, this.#context.roomFor(from), (...move) => void this.#moveTo(...move));
    this.#all.set(url, there);
    there.observers.set(from, id);
    there.asking.add(`${from} ${id}`);
    if (isFirst) {
      // It answers from there when the object is deleted.
      this.#context.bus.grant(this.#context.port.url, `${url}/changes`);
      this.#context.listen(`${url}/changes`);
      // Of what is reported here, its reporter decides who hears of it; a node does so of the rest.
      if (this.#reporterOf(url) === null) this.#follow(there, from);
    }
    const { p2p } = body;
    there.route.prefer(from, there.isOfLink ? false : typeof p2p === "boolean" ? p2p : null);
    if (there.route.mayUseLinks) this.#context.links.want(url);
    void this.#begin(request, there, isFirst);
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   */
  #follow({ url }, observer) {
    const children = this.#reporterOf(url) === observer ? [] : childrenOf(url);
    for (const address of [`${url}/changes`, ...children]) this.#context.follow(address, observer);
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   */
  #unfollow({ url }, observer) {
    for (const address of publishedOf(url)) this.#context.unfollow(address, observer);
  }

  /**
   * @param {Message} request
   * @param {Observed} there
   * @param {boolean} isFirst
   */
  async #begin(request, there, isFirst) {
    const { from } = request;
    /** @type {Opened} */
    let opened;
    if (isFirst) opened = await this.#open(there, from);
    else if (there.observers.has(from)) {
      // A renewal is no new subscription: an expelled observer does not come back so.
      const version = request.body.resume === true ? there.version : 0;
      opened = await this.#join(there, from, version);
    } else {
      const answer = refuse(request, CODES.GONE, "the observer left before it was subscribed");
      opened = { answer, link: null, barred: null };
    }
    this.#done(request, there, opened, isFirst);
  }

  /**
   * Ask for the first observer: by the live link there is, else by the node.
   *
   * @param {Observed} there
   * @param {string} observer
   * @returns {Promise<Opened>}
   */
  async #open(there, observer) {
    const link = there.route.mayUseLinks ? this.#context.links.linkTo(there.url) : null;
    if (link !== null) {
      // What it grants may come before the answer.
      there.heardBy = link;
      const answer = await this.#ask(there, "subscribe", { source: observer }, link);
      if (isDecided(answer)) return { answer, link, barred: null };
      // Closed meanwhile: nothing would take a path back.
      if (this.#all.get(there.url) !== there) return { answer: goneInstead(answer), link: null, barred: link };
    }
    there.heardBy = null;
    let answer = await this.#setPath(there);
    if (!there.route.isWantedBy(observer)) answer = goneInstead(answer);
    if (isSuccess(answer)) answer = await this.#ask(there, "subscribe", { source: observer });
    return { answer, link: null, barred: link };
  }

  /**
   * Ask for one more observer, by the way in use.
   *
   * @param {Observed} there
   * @param {string} observer
   * @param {number} version of what came here, if it observes already, and goes on; or 0
   * @returns {Promise<Opened>}
   */
  async #join(there, observer, version) {
    const body = { source: observer, version: version || undefined };
    const { used } = there.route;
    if (used !== null) {
      const answer = await this.#ask(there, "subscribe", body, used);
      if (isDecided(answer) || !there.route.isWantedBy(observer)) return { answer, link: used, barred: null };
    }
    return { answer: await this.#ask(there, "subscribe", body), link: null, barred: null };
  }

  /**
   * @param {Observed} there
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
   * @param {Observed} there
   * @param {Opened} opened
   * @param {boolean} isFirst
   */
  #done(request, there, { answer, link, barred }, isFirst) {
    const { from, id } = request;
    there.asking.delete(`${from} ${id}`);
    if (isFirst) there.route.opened(link, barred);
    else there.route.asked(link);
    if (isFirst) this.#linkIs(there);
    const asked = there.observers.get(from);
    if (isSuccess(answer)) {
      this.#letIn(there, from);
      if (asked === id) this.#granted(there, from, answer);
      const p2p = link === null ? undefined : true;
      return this.#context.answer(request, CODES.OK, { value: answer.body.value, p2p });
    }
    const isTimeout = codeOf(answer) === CODES.TIMEOUT;
    // The reporter's yes may be on its way: it must not stay.
    if (isTimeout && (asked ?? id) === id) void this.#ask(there, "unsubscribe", { source: from });
    if (asked === id) this.#takeOff(there, from);
    this.#closeIfLeft(there, null);
    if (there.observers.size && there.route.used === null) void this.#renew(there);
    this.#context.answer(request, codeOf(answer), { description: reasonIn(answer) || undefined });
  }

  /**
   * Deliver an object to an observer, and to no observer before it is let in.
   *
   * @param {Observed} there
   * @param {string} observer
   */
  #letIn(there, observer) {
    for (const [other, id] of there.observers) if (there.isAsking(other, id)) this.#unfollow(there, other);
    if (there.observers.has(observer)) this.#follow(there, observer);
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   * @param {Message} answer
   */
  #granted(there, observer, { body }) {
    const { value, lease } = body;
    const life = typeof lease === "number" && lease > 0 ? lease : Infinity;
    this.#renewals.granted(`${there.url}|${observer}`, life, this.#context.now, Math.random());
    this.#alarm.set(this.#renewals.deadline);
    this.#came(there, value);
  }

  /**
   * @param {Observed} there
   * @param {Json | undefined} value
   */
  #came(there, value) {
    const version = isObject(value) ? value.version : null;
    if (Number.isInteger(version)) there.version = Math.max(there.version, Number(version));
  }

  /**
   * @param {Observed} there
   * @param {Message} event
   */
  changed(there, { from, body }) {
    if (from === there.url) this.#came(there, body);
  }

  /**
   * Show an observer what the object is now: it may have missed what was said.
   *
   * @param {string} url
   * @param {string} observer
   * @param {Json | undefined} value
   */
  #show(url, observer, value) {
    this.#context.port.publish("update", observer, { resource: url, value });
  }

  // ---- the path at the node

  /** @param {Observed} there */
  #setPath(there) {
    there.hasPath = true;
    return this.#context.path("subscribe", domainOf(there.url), publishedOf(there.url));
  }

  /** The node has forgotten all: set the paths again. */
  renew() {
    for (const there of this.#all.values()) {
      if (there.isClosing || !there.hasPath) continue;
      there.isForgotten = true;
      void this.#renew(there);
    }
  }

  /**
   * Set a path again, and ask its owner again: some times at once, and then now and then until both
   * are known or a link serves, as no change comes here before that.
   *
   * @param {Observed} there
   */
  async #renew(there) {
    if (there.isRenewed) return;
    there.isRenewed = true;
    let isKnown = false;
    do {
      there.isForgotten = false;
      isKnown = await this.#isRenewedNow(there);
    } while (there.isForgotten);
    there.isRenewed = false;
    if (!isKnown) void this.#findAgain(there);
  }

  /** @param {Observed} there */
  async #findAgain(there) {
    await sleep(this.#context.tools.clock, REPEAT_LAST);
    const isWanted = this.#all.get(there.url) === there && !there.isClosing && there.route.used === null;
    if (isWanted && !there.isRenewed) void this.#renew(there);
  }

  /** @param {Observed} there */
  async #isRenewedNow(there) {
    let pause = READ_PAUSE;
    let isSet = false;
    for (let tries = 0; tries < RECONNECT_TRIES && !there.isForgotten; tries += 1) {
      isSet = isSet || there.isClosing || !isOneOf(LATER, await this.#setPath(there));
      // Without a path the owner is asked at last: its answer brings what was missed so far.
      const isLast = tries === RECONNECT_TRIES - 1;
      if ((isSet || isLast) && (await this.#isKnownAgain(there)) && isSet) return true;
      await sleep(this.#context.tools.clock, pause);
      pause *= 2;
    }
    return false;
  }

  /** @param {Observed} there */
  async #isKnownAgain(there) {
    for (const [observer, id] of [...there.observers]) {
      if (there.isClosing || !there.observers.has(observer)) continue;
      const answer = await this.#ask(there, "subscribe", { source: observer });
      if (isOneOf(LATER, answer)) return false;
      if (isSuccess(answer)) this.#show(there.url, observer, answer.body.value);
      else if (codeOf(answer) === CODES.FORBIDDEN) this.#refusedAgain(there, observer, id);
    }
    return true;
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   * @param {number} id
   */
  #refusedAgain(there, observer, id) {
    if (there.observers.get(observer) !== id || there.isAsking(observer, id)) return;
    this.#takeOff(there, observer);
    void this.#context.port.ask("unsubscribe", observer, { resource: there.url });
    this.#closeIfLeft(there, null);
  }

  // ---- time

  #timeOver() {
    for (const key of this.#renewals.due(this.#context.now)) {
      const [url, observer] = key.split("|");
      const there = this.#all.get(url);
      const id = there?.observers.get(observer);
      if (there && id !== undefined) void this.#renewLease(there, observer, id);
    }
    this.#alarm.set(this.#renewals.deadline);
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   * @param {number} id
   */
  async #renewLease(there, observer, id) {
    const { answer, link } = await this.#join(there, observer, there.version);
    if (this.#all.get(there.url) !== there || there.observers.get(observer) !== id) return;
    const { value, renewed } = answer.body;
    if (codeOf(answer) === CODES.FORBIDDEN) this.#refusedAgain(there, observer, id);
    else if (!isSuccess(answer)) {
      this.#renewals.unanswered(`${there.url}|${observer}`, this.#context.now, Math.random());
    } else {
      there.route.asked(link);
      this.#granted(there, observer, answer);
      // The lease was over already: the node has removed the path.
      if (renewed !== true && there.route.used === null) void this.#renew(there);
      if (value !== undefined) this.#show(there.url, observer, value);
    }
    this.#alarm.set(this.#renewals.deadline);
  }

  // ---- what the reporter's end says

  /** @param {Message} request */
  back(request) {
    const there = this.#all.get(textIn(request.body, "resource"));
    const observers = there && !there.isClosing ? [...there.observers.keys()] : [];
    this.#context.answer(request, CODES.OK, { value: observers });
    if (there && observers.length) void this.#renew(there);
  }

  /** @param {Message} request */
  expelled(request) {
    const there = this.#all.get(textIn(request.body, "resource"));
    const observer = textIn(request.body, "observer");
    this.#context.answer(request, CODES.OK);
    const id = there?.observers.get(observer);
    // A message of the reporter may be lost; this one has come.
    if (there && id !== undefined) this.#refusedAgain(there, observer, id);
  }

  /**
   * @param {Observed} there
   * @param {Message} event
   */
  deleted(there, event) {
    if (event.from !== `${there.url}/subscription`) {
      return this.#context.refuse(event, CODES.FORBIDDEN, "only its reporter deletes an object");
    }
    this.#context.answer(event, CODES.OK, { source: this.#context.runtime });
    for (const observer of [...there.observers.keys()]) this.#takeOff(there, observer);
    there.isDeleted = true;
    this.#closeIfLeft(there, null);
  }

  // ---- end

  /** @param {Message} request */
  leave(request) {
    const there = this.#all.get(textIn(request.body, "resource"));
    if (there?.observers.has(request.from)) void this.#letGo(there, request.from, request);
    else this.#context.answer(request, CODES.OK);
  }

  /** @param {string} component */
  async leaveAll(component) {
    /** @type {Promise<void>[]} */
    const ends = [];
    for (const there of this.#all.values()) {
      for (const observer of there.observers.keys()) {
        if (!isBelow(observer, component)) continue;
        void this.#letGo(there, observer, null);
        ends.push(there.end);
      }
    }
    await Promise.all(ends);
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   * @param {Message | null} request
   */
  async #letGo(there, observer, request) {
    this.#takeOff(there, observer);
    there.leaving += 1;
    let answer = await this.#leave(there, observer);
    for (let tries = 1; tries < LEAVE_TRIES && codeOf(answer) === CODES.UNAVAILABLE; tries += 1) {
      await sleep(this.#context.tools.clock, BUSY_PAUSE);
      if (there.observers.has(observer)) break;
      answer = await this.#leave(there, observer);
    }
    there.leaving -= 1;
    this.#closeIfLeft(there, request);
    if (there.observers.size) there.gone();
  }

  /**
   * @param {Observed} there
   * @param {string} observer
   */
  async #leave(there, observer) {
    const body = { source: observer };
    const { used } = there.route;
    if (used !== null) {
      const answer = await this.#ask(there, "unsubscribe", body, used);
      const isLeft = !isOneOf(UNHEARD, answer) && codeOf(answer) !== CODES.UNAUTHENTICATED;
      // A leave must not take back that it observes again.
      if (isLeft || there.observers.has(observer)) return answer;
    }
    return this.#ask(there, "unsubscribe", body);
  }

  /**
   * Deliver no change to an observer any more; its neighbours observe on.
   *
   * @param {Observed} there
   * @param {string} observer
   */
  #takeOff(there, observer) {
    there.observers.delete(observer);
    this.#renewals.ended(`${there.url}|${observer}`);
    there.route.left(observer);
    this.#unfollow(there, observer);
  }

  /**
   * @param {Observed} there
   * @param {Message | null} request
   */
  #closeIfLeft(there, request) {
    if (!there.observers.size && !there.leaving && !there.isClosing) {
      there.isClosing = true;
      void this.#close(there, request);
    } else if (request) this.#context.answer(request, CODES.OK);
  }

  /**
   * @param {Observed} there
   * @param {Message | null} request
   */
  async #close(there, request) {
    const { url } = there;
    this.#context.unlisten(`${url}/changes`);
    this.#context.bus.revoke(this.#context.port.url, `${url}/changes`);
    await this.#closePath(there);
    this.#all.delete(url);
    there.leave();
    there.gone();
    if (request) this.#context.answer(request, CODES.OK);
    for (const waiting of there.waiting) this.#observe(waiting, url);
  }

  /**
   * Have the node deliver nothing any more; children stay as long as the object is reported here.
   *
   * @param {Observed} there
   */
  async #closePath(there) {
    if (!there.hasPath) return;
    there.hasPath = false;
    const changes = [`${there.url}/changes`];
    const children = this.#reporterOf(there.url) === null ? childrenOf(there.url) : [];
    // Children have died with their object, and are nothing of it any more.
    for (const paths of there.isDeleted ? [children, changes] : [[...changes, ...children]]) {
      if (paths.length) await this.#context.path("unsubscribe", domainOf(there.url), paths);
    }
  }

  // ---- links

  /**
   * Return the link by which an object is observed; null: by the node, or not at all.
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
    for (const there of this.#all.values()) this.#linkIs(there);
  }

  /** @param {Observed} there */
  #linkIs(there) {
    if (!there.isOfLink) there.route.linkIs(this.#context.links.linkTo(there.url));
  }

  /**
   * @param {Observed} there
   * @param {string | null} link null: the node
   */
  async #moveTo(there, link) {
    const how = link === null ? await this.#toNode(there) : await this.#toLink(there, link);
    if (this.#all.get(there.url) === there) there.route.moved(link, how);
  }

  /**
   * @param {Observed} there
   * @returns {Promise<import("./routes.js").Moving>}
   */
  async #toNode(there) {
    await this.#renew(there);
    there.heardBy = null;
    return "done";
  }

  /**
   * Ask for one observer by the link: then its whole runtime is served by that.
   *
   * @param {Observed} there
   * @param {string} link
   * @returns {Promise<import("./routes.js").Moving>}
   */
  async #toLink(there, link) {
    const observer = there.route.anybody;
    if (observer === undefined) return "refused";
    there.heardBy = link;
    const answer = await this.#ask(there, "subscribe", { source: observer }, link);
    if (!isSuccess(answer)) return isOneOf(UNHEARD, answer) ? "unsure" : "refused";
    if (there.hasPath) {
      // What went by the node before may still come; a gap would only be read.
      await sleep(this.#context.tools.clock, READ_PAUSE);
      if (this.#all.get(there.url) === there) await this.#closePath(there);
    }
    return "done";
  }
}
