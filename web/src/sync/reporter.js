/**
 * State of a reported data object: its value, observers and invitations; a state machine without
 * I/O, see `fsm/sync/reporter.py`.
 */

import { runtimeOf } from "../address.js";
import {
  CODES, LEASE_SLACK, MAX_ALLOWED_OBSERVERS, MAX_REPEATED_ASKS, MAX_UNDECIDED,
} from "../constants.js";
import { BadMessageError } from "../json.js";
import { Entity } from "../machine.js";
import { changed, freeze, publishedChange, valueAt } from "../value.js";
import { Alarms, RENEWED_AFTER } from "./leases.js";

/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../value.js").Change} Change */
/** @typedef {import("./copy.js").Published} Published */

/**
 * @typedef {{reporter: string, runtime: string, data: JsonObject, url: string, version: number,
 *   name?: string, schema?: string, resources?: string[], childrenObjects?: JsonObject,
 *   childrenWindow?: import("./children.js").ChildWindow,
 *   created?: string}} DataObject
 */

/**
 * The commands of a reported object, which its host executes.
 * @typedef {object} ReporterPort
 * @property {(step: import("../machine.js").Step) => void} step
 * @property {(row: {op: "add" | "del", table: string, key: string, val: string, writer: string}) => void} row
 * @property {(request: Message, observer: string, question: number) => void} ask asks the reporter
 * @property {(requests: Message[], terms: JsonObject, isWhole: boolean) => void} grant with the newest
 *   object, or without it
 * @property {(requests: Message[], code: number, why: string) => void} deny
 * @property {(request: Message, observer: string) => void} invite passes an invitation on
 * @property {(requests: Message[], observer: string, code: number, why: string) => void} relay answers
 *   invitations
 * @property {(observer: string, manager: string, isOver: boolean) => void} cutOff ends delivery to an
 *   observer that was expelled, or whose lease is over
 * @property {(change: Published) => void} publish
 * @property {(runtimes: string[]) => void} end the object is deleted
 * @property {() => void} vacate nobody observes it any more
 */

export const PUBLIC = "public";
const ALLOWED = "invited";

const DELETED = "the object is deleted";
const EXPELLED = "the reporter expelled the observer";
const CROWD = "too many observe, or wait for the reporter to decide; ask again later";
const NO_ROOM = `${MAX_ALLOWED_OBSERVERS} observers are allowed already; expel one of them first`;

/**
 * @param {Set<string>} expelled
 * @param {string} observer
 */
function note(expelled, observer) {
  expelled.add(observer);
  if (expelled.size > MAX_ALLOWED_OBSERVERS) expelled.delete([...expelled][0]);
}

/** The hyperties that may observe one object, and those that were expelled. */
class AllowedObservers {
  #allowed;
  #expelled = new Set();
  #shutOut = new Set();

  /**
   * @param {string[]} allowed
   * @param {boolean} isPublic
   */
  constructor(allowed, isPublic) {
    this.#allowed = new Set(allowed.slice(0, MAX_ALLOWED_OBSERVERS));
    this.isPublic = isPublic;
  }

  /** @param {string} observer */
  welcome(observer) {
    if (this.#allowed.has(observer)) return ALLOWED;
    return this.isPublic && !this.#expelled.has(observer) ? PUBLIC : "";
  }

  /** @param {string} observer */
  allow(observer) {
    if (!this.#allowed.has(observer) && this.#allowed.size >= MAX_ALLOWED_OBSERVERS) return false;
    this.#shutOut.delete(observer);
    this.#expelled.delete(observer);
    this.#allowed.add(observer);
    return true;
  }

  /** @param {string} observer */
  expel(observer) {
    this.#allowed.delete(observer);
    note(this.#shutOut, observer);
    if (this.isPublic) note(this.#expelled, observer);
  }

  /** @param {string} observer */
  mayRenew(observer) {
    return !this.#shutOut.has(observer);
  }

  /** @param {string} observer */
  asksAnew(observer) {
    this.#shutOut.delete(observer);
  }
}

/**
 * One observer's subscription, requested or active: the time until which the reporter must decide,
 * or the lease lasts, and the unanswered requests.
 * @typedef {{entity: Entity, manager: string, lease: number | null, question: number, until: number,
 *   requests: Message[]}} Subscription
 */

/** One reported data object; operations that are not permitted throw an error. */
export class ReporterCore {
  #object;
  #port;
  #guests;
  /** @type {Map<string, Subscription>} */
  #all = new Map();
  #alarms = new Alarms();
  /**
   * Invitations in the order of their deadlines, as all of them wait equally long.
   *
   * @type {Map<string, {entity: Entity, until: number, requests: Message[]}>}
   */
  #invitations = new Map();
  #undecided = 0;
  #asked = 0;
  #isDeleted = false;

  /**
   * @param {DataObject} created
   * @param {ReporterPort} port
   * @param {string[]} [allowed]
   * @param {boolean} [isPublic]
   */
  constructor(created, port, allowed = [], isPublic = false) {
    this.#object = { ...created, data: freeze(created.data) };
    this.#port = port;
    this.#guests = new AllowedObservers(allowed, isPublic);
  }

  /** The newest object, version included. */
  get snapshot() {
    return this.#object;
  }

  get isDeleted() {
    return this.#isDeleted;
  }

  /** The observers, in the order of their requests. */
  get observers() {
    return this.#active().map(([observer]) => observer);
  }

  /** The runtimes of the observers, each once. */
  get runtimes() {
    return [...new Set(this.#active().map(([, one]) => runtimeOf(one.manager)))];
  }

  /** The runtimes of observers without a decision. */
  get asking() {
    return this.#waiting().map(([, one]) => runtimeOf(one.manager));
  }

  #active() {
    return [...this.#all].filter(([, one]) => isActive(one));
  }

  #waiting() {
    return [...this.#all].filter(([, one]) => !isActive(one));
  }

  /**
   * @param {string} observer
   * @returns {number | null} seconds; null: its subscription needs no renewal
   */
  leaseOf(observer) {
    const subscription = this.#all.get(observer);
    return subscription && isActive(subscription) ? subscription.lease : null;
  }

  /** @param {string} reader */
  mayRead(reader) {
    const subscription = this.#all.get(reader);
    const isObserver = subscription !== undefined && isActive(subscription);
    return isObserver || Boolean(this.#guests.welcome(reader)) || reader === this.#object.reporter;
  }

  // ---- time

  /** When `timeOver` is due. */
  get deadline() {
    const [first] = this.#invitations.values();
    return Math.min(this.#alarms.deadline, first?.until ?? Infinity);
  }

  /**
   * End the questions, leases and invitations whose time is over. If the machine has slept, all
   * leases are extended by one renewal.
   *
   * @param {number} now
   */
  timeOver(now) {
    for (const observer of this.#alarms.due(now)) {
      const subscription = /** @type {Subscription} */ (this.#all.get(observer));
      const isLate = isActive(subscription) && now - subscription.until > LEASE_SLACK;
      if (isLate && subscription.lease !== null) subscription.until = now + subscription.lease * RENEWED_AFTER;
      if (subscription.until > now) {
        this.#alarms.set(observer, subscription.until);
      } else if (isActive(subscription)) {
        this.#remove(observer, "expire");
        this.#port.cutOff(observer, subscription.manager, true);
        this.#vacate();
      } else {
        this.#refuse(observer, "refuse", CODES.FORBIDDEN, "the reporter did not answer");
      }
    }
    for (const [observer, { until }] of [...this.#invitations]) {
      if (until <= now) this.#relay(observer, "silence", CODES.TIMEOUT, "no answer came");
    }
  }

  /**
   * @param {string} observer
   * @param {number} until
   */
  #wait(observer, until) {
    /** @type {Subscription} */ (this.#all.get(observer)).until = until;
    this.#alarms.set(observer, until);
  }

  // ---- observers

  /**
   * @param {Message} request
   * @param {string} observer
   * @param {number | null} lease
   * @param {number | null} version that it has; null: it does not renew a subscription
   * @param {number} now
   */
  subscribe(request, observer, lease, version, now) {
    const port = this.#port;
    const { from: manager } = request;
    if (this.#isDeleted) return port.deny([request], CODES.NOT_FOUND, DELETED);
    const subscription = this.#all.get(observer);
    if (subscription && isActive(subscription)) return this.#again(subscription, request, observer, lease, version, now);
    if (subscription) return this.#queue(subscription, request, lease);
    if (version === null) this.#guests.asksAnew(observer);
    else if (!this.#guests.mayRenew(observer)) return port.deny([request], CODES.FORBIDDEN, EXPELLED);
    const welcome = this.#guests.welcome(observer);
    const isAnswerable = welcome || this.#undecided < MAX_UNDECIDED;
    if (!isAnswerable || this.#all.size >= MAX_ALLOWED_OBSERVERS) {
      return port.deny([request], CODES.UNAVAILABLE, CROWD);
    }
    const entity = new Entity("object_subscription", `${this.#object.url}|${observer}`);
    this.#undecided += 1;
    this.#asked += 1;
    const question = this.#asked;
    this.#all.set(observer, { entity, manager, lease, question, until: Infinity, requests: [request] });
    port.step(entity.step("request"));
    if (welcome) return this.#accept(observer, now, welcome);
    this.#wait(observer, now + entity.patience);
    port.ask(request, observer, question);
  }

  /**
   * @param {Subscription} subscription
   * @param {Message} request
   * @param {number | null} lease
   */
  #queue(subscription, request, lease) {
    if (subscription.requests.length >= MAX_REPEATED_ASKS) {
      return this.#port.deny([request], CODES.TOO_LARGE, "its requests wait for the reporter already");
    }
    subscription.manager = request.from;
    subscription.lease = lease;
    subscription.requests.push(request);
  }

  /**
   * Process a repeated request or a renewal; an active observer gets the object again.
   *
   * @param {Subscription} subscription
   * @param {Message} request
   * @param {string} observer
   * @param {number | null} lease
   * @param {number | null} version
   * @param {number} now
   */
  #again(subscription, request, observer, lease, version, now) {
    const isAsBefore = subscription.manager === request.from && subscription.lease === lease;
    subscription.manager = request.from;
    subscription.lease = lease;
    if (lease !== null) this.#port.step(subscription.entity.step("renew"));
    this.#wait(observer, overAt(lease, now));
    const isWhole = !isAsBefore || version !== this.#object.version;
    this.#port.grant([request], { ...(version === null ? {} : { renewed: true }), ...termsOf(lease) }, isWhole);
  }

  /**
   * Accept an observer by the reporter's decision; ignore an answer to an older question.
   *
   * @param {string} observer
   * @param {number} question
   * @param {number} now
   */
  accept(observer, question, now) {
    if (this.#all.get(observer)?.question === question) this.#accept(observer, now);
  }

  /**
   * Refuse an observer, as the reporter refuses or does not decide.
   *
   * @param {string} observer
   * @param {string} why
   * @param {number} question
   */
  refuse(observer, why, question) {
    const subscription = this.#all.get(observer);
    if (!subscription || isActive(subscription) || subscription.question !== question) return;
    this.#refuse(observer, "refuse", CODES.FORBIDDEN, why);
  }

  /**
   * Make a waiting observer active, before it gets the object; ignore others.
   *
   * @param {string} observer
   * @param {number} now
   * @param {string} [why]
   */
  #accept(observer, now, why = "") {
    const subscription = this.#all.get(observer);
    if (!subscription || isActive(subscription)) return;
    this.#undecided -= 1;
    this.#row("add", observer);
    this.#port.step(subscription.entity.step("accept", why));
    this.#alarms.set(observer, Infinity);
    this.#wait(observer, overAt(subscription.lease, now));
    this.#port.grant(subscription.requests.splice(0), termsOf(subscription.lease), true);
  }

  /**
   * Remove a waiting subscription, and answer its requests with a refusal.
   *
   * @param {string} observer
   * @param {string} trigger
   * @param {number} code
   * @param {string} why
   */
  #refuse(observer, trigger, code, why) {
    const { entity, requests } = this.#take(observer);
    this.#port.step(entity.step(trigger, why));
    this.#undecided -= 1;
    this.#port.deny(requests, code, why);
  }

  /**
   * Remove an active observer.
   *
   * @param {string} observer
   * @param {string} trigger
   * @param {string} [why]
   */
  #remove(observer, trigger, why) {
    this.#port.step(this.#take(observer).entity.step(trigger, why));
    this.#row("del", observer);
  }

  /** @param {string} observer */
  #take(observer) {
    const subscription = /** @type {Subscription} */ (this.#all.get(observer));
    this.#all.delete(observer);
    this.#alarms.set(observer, Infinity);
    return subscription;
  }

  /**
   * @param {"add" | "del"} op
   * @param {string} observer
   */
  #row(op, observer) {
    this.#port.row({ op, table: "observers", key: this.#object.url, val: observer, writer: "sm" });
  }

  /**
   * @param {string} observer
   * @param {string} manager
   */
  unsubscribe(observer, manager) {
    const subscription = this.#all.get(observer);
    if (subscription?.manager !== manager) return;
    if (!isActive(subscription)) {
      return this.#refuse(observer, "unsubscribe", CODES.GONE, "the observer left before the decision");
    }
    this.#remove(observer, "unsubscribe");
    this.#vacate();
  }

  // ---- what the reporter wants

  /**
   * Permit a hyperty to observe the object without a decision of the reporter.
   *
   * @param {string} by
   * @param {string} observer
   * @param {number} now
   */
  allow(by, observer, now) {
    this.check(by);
    if (!this.#guests.allow(observer)) throw new BadMessageError(NO_ROOM, CODES.TOO_LARGE);
    this.#accept(observer, now, ALLOWED);
  }

  /**
   * Permit a hyperty to observe, and invite it; its answers are passed on to the request.
   *
   * @param {Message} request
   * @param {string} observer
   * @param {number} now
   */
  invite(request, observer, now) {
    this.allow(request.from, observer, now);
    const open = this.#invitations.get(observer);
    if (open) return void open.requests.push(request);
    const entity = new Entity("invitation", `${this.#object.url}|${observer}`);
    this.#port.step(entity.step("send"));
    this.#invitations.set(observer, { entity, until: now + entity.patience, requests: [request] });
    this.#port.invite(request, observer);
  }

  /**
   * Process an answer to an invitation, from the observer or from a router.
   *
   * @param {string} observer
   * @param {number} code
   * @param {string} why
   * @param {number} now
   */
  takeAnswer(observer, code, why, now) {
    const invitation = this.#invitations.get(observer);
    if (!invitation) return;
    invitation.until = now + invitation.entity.patience;
    const final = code === CODES.TIMEOUT ? "silence" : "refuse";
    this.#relay(observer, code < 200 ? "provisional" : code < 300 ? "accept" : final, code, why);
  }

  /**
   * @param {string} observer
   * @param {string} trigger
   * @param {number} code
   * @param {string} why
   */
  #relay(observer, trigger, code, why) {
    const invitation = /** @type {{entity: Entity, until: number, requests: Message[]}} */ (this.#invitations.get(observer));
    this.#invitations.delete(observer);
    this.#port.step(invitation.entity.step(trigger, why));
    if (!invitation.entity.mayEnd) this.#invitations.set(observer, invitation);
    this.#port.relay([...invitation.requests], observer, code, why);
  }

  /**
   * @param {string} by
   * @param {string} observer
   */
  expel(by, observer) {
    this.check(by);
    this.#guests.expel(observer);
    const subscription = this.#all.get(observer);
    if (subscription && isActive(subscription)) this.#remove(observer, "unsubscribe", EXPELLED);
    else if (subscription) this.#refuse(observer, "refuse", CODES.FORBIDDEN, EXPELLED);
    this.#port.cutOff(observer, subscription?.manager ?? "", false);
  }

  /**
   * Refuse what only the reporter may do, and what nobody may do with a deleted object.
   *
   * @param {string} by
   */
  check(by) {
    if (this.#isDeleted) throw new BadMessageError(DELETED, CODES.NOT_FOUND);
    if (by !== this.#object.reporter) throw new BadMessageError("only the reporter may", CODES.FORBIDDEN);
  }

  /**
   * @param {string} by
   * @param {Change} change
   */
  change(by, { attribute, value = null, attributeType, operation }) {
    this.check(by);
    const version = this.#object.version + 1;
    const before = this.#object.data;
    const brought = value === null ? undefined : freeze(value);
    const asked = { attribute, value: brought, attributeType, operation };
    const data = freeze(changed(before, asked));
    this.#object = { ...this.#object, version, data };
    this.#port.publish({ ...publishedChange(before, data, asked), version, source: by });
  }

  /**
   * Remove an attribute, if there is one.
   *
   * @param {string} by
   * @param {string} attribute
   */
  remove(by, attribute) {
    this.check(by);
    if (valueAt(this.#object.data, attribute) !== undefined) this.change(by, { attribute });
  }

  /** @param {string} by */
  delete(by) {
    this.check(by);
    this.#isDeleted = true;
    const gone = /** @type {const} */ (["object-deleted", CODES.NOT_FOUND, DELETED]);
    for (const [observer] of this.#waiting()) this.#refuse(observer, ...gone);
    for (const observer of [...this.#invitations.keys()]) this.#relay(observer, ...gone);
    this.#port.end(this.runtimes);
    this.#vacate();
  }

  /**
   * Remove runtimes that know of the object's deletion, or do not answer any more.
   *
   * @param {string[]} [runtimes] without them: all
   */
  notified(runtimes = this.runtimes) {
    if (!this.#isDeleted || !this.#all.size) return;
    const gone = this.#active().filter(([, one]) => runtimes.includes(runtimeOf(one.manager)));
    for (const [observer] of gone) this.#remove(observer, "object-deleted");
    this.#vacate();
  }

  #vacate() {
    if (this.#isDeleted && !this.#all.size) this.#port.vacate();
  }
}

/** @param {Subscription} one */
const isActive = (one) => one.entity.state === "active";

/**
 * @param {number | null} lease
 * @param {number} now
 */
const overAt = (lease, now) => (lease === null ? Infinity : now + lease);

/** @param {number | null} lease */
const termsOf = (lease) => (lease === null ? {} : { lease });
