/**
 * The reporter's end of a data object: observers, and changes to publish.
 * `fsm/sync/reporter.py` explains it.
 */

import { runtimeOf } from "../address.js";
import { CODES, MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED } from "../constants.js";
import { BadMessageError } from "../json.js";
import { Entity } from "../machine.js";
import { changed, freeze, publishedChange, valueAt } from "../value.js";

/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../value.js").Change} Change */
/** @typedef {import("./copy.js").Published} Published */

/**
 * @typedef {{reporter: string, runtime: string, data: JsonObject, url: string, version: number,
 *   name?: string, schema?: string, resources?: string[], childrenObjects?: JsonObject,
 *   created?: string}} DataObject
 */

/**
 * What a reported object asks for.
 * @typedef {object} ReporterPort
 * @property {(step: import("../machine.js").Step) => void} step
 * @property {(row: {op: "add" | "del", table: string, key: string, val: string, writer: string}) => void} row
 * @property {(observer: string, patience: number, question: number) => void} ask asks the reporter
 * @property {(observer: string, snapshot: DataObject, lease: number | null, isRenewal: boolean) => void} grant
 * @property {(observer: string, lease: number | null) => void} renew
 * @property {(observer: string, code: number, why: string) => void} deny
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

/** The allowed observers of one object. */
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
 * One observer's subscription, while it is requested or active.
 * @typedef {{entity: Entity, manager: string, lease: number | null, question: number}} Subscription
 */

/** The reporter's end of one data object; what may not be done is refused by an error. */
export class ReporterCore {
  #object;
  #port;
  #guests;
  /** @type {Map<string, Subscription>} */
  #all = new Map();
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
    const one = this.#all.get(observer);
    return one && isActive(one) ? one.lease : null;
  }

  /** @param {string} reader */
  mayRead(reader) {
    const one = this.#all.get(reader);
    const isObserver = one !== undefined && isActive(one);
    return isObserver || Boolean(this.#guests.welcome(reader)) || reader === this.#object.reporter;
  }

  // ---- observers

  /**
   * @param {string} observer
   * @param {string} manager
   * @param {number | null} lease
   * @param {number | null} version that it has; null: it does not renew a subscription
   */
  subscribe(observer, manager, lease, version) {
    const port = this.#port;
    if (this.#isDeleted) return port.deny(observer, CODES.NOT_FOUND, DELETED);
    const there = this.#all.get(observer);
    if (there) return this.#again(there, observer, manager, lease, version);
    if (version === null) this.#guests.asksAnew(observer);
    else if (!this.#guests.mayRenew(observer)) return port.deny(observer, CODES.FORBIDDEN, EXPELLED);
    const welcome = this.#guests.welcome(observer);
    const isAnswerable = welcome || this.#undecided < MAX_UNDECIDED;
    if (!isAnswerable || this.#all.size >= MAX_ALLOWED_OBSERVERS) {
      return port.deny(observer, CODES.UNAVAILABLE, CROWD);
    }
    const entity = new Entity("object_subscription", `${this.#object.url}|${observer}`);
    this.#undecided += 1;
    this.#asked += 1;
    const question = this.#asked;
    this.#all.set(observer, { entity, manager, lease, question });
    port.step(entity.step("request"));
    if (welcome) this.#accept(observer, welcome);
    else port.ask(observer, entity.patience, question);
  }

  /**
   * Take a retry, or a renewal: an active observer gets the object again, others wait on.
   *
   * @param {Subscription} there
   * @param {string} observer
   * @param {string} manager
   * @param {number | null} lease
   * @param {number | null} version
   */
  #again(there, observer, manager, lease, version) {
    const isAsBefore = there.manager === manager && there.lease === lease;
    there.manager = manager;
    there.lease = lease;
    if (!isActive(there)) return;
    if (lease !== null) this.#port.step(there.entity.step("renew"));
    if (isAsBefore && version === this.#object.version) this.#port.renew(observer, lease);
    else this.#port.grant(observer, this.#object, lease, true);
  }

  /**
   * The reporter accepts; an answer to an older question does not count.
   *
   * @param {string} observer
   * @param {number} question
   */
  accept(observer, question) {
    if (this.#all.get(observer)?.question === question) this.#accept(observer);
  }

  /**
   * The reporter refuses, or does not answer.
   *
   * @param {string} observer
   * @param {string} why
   * @param {number} question
   */
  refuse(observer, why, question) {
    const there = this.#all.get(observer);
    if (!there || isActive(there) || there.question !== question) return;
    this.#refuse(observer, "refuse", CODES.FORBIDDEN, why);
  }

  /**
   * Make a waiting observer active, before it is given the object; ignore others.
   *
   * @param {string} observer
   * @param {string} [why]
   */
  #accept(observer, why = "") {
    const there = this.#all.get(observer);
    if (!there || isActive(there)) return;
    this.#undecided -= 1;
    this.#row("add", observer);
    this.#port.step(there.entity.step("accept", why));
    this.#port.grant(observer, this.#object, there.lease, false);
  }

  /**
   * Forget a waiting subscription, and answer it.
   *
   * @param {string} observer
   * @param {string} trigger
   * @param {number} code
   * @param {string} why
   */
  #refuse(observer, trigger, code, why) {
    this.#port.step(this.#take(observer).entity.step(trigger, why));
    this.#undecided -= 1;
    this.#port.deny(observer, code, why);
  }

  /**
   * Forget an active observer.
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
    const there = /** @type {Subscription} */ (this.#all.get(observer));
    this.#all.delete(observer);
    return there;
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
    const there = this.#all.get(observer);
    if (there?.manager !== manager) return;
    if (!isActive(there)) {
      return this.#refuse(observer, "unsubscribe", CODES.GONE, "the observer left before the decision");
    }
    this.#remove(observer, "unsubscribe");
    this.#vacate();
  }

  /**
   * Remove an observer that has not renewed its subscription; it may subscribe again.
   *
   * @param {string} observer
   */
  expire(observer) {
    const there = this.#all.get(observer);
    if (!there || this.leaseOf(observer) === null) return;
    this.#remove(observer, "expire");
    this.#port.cutOff(observer, there.manager, true);
    this.#vacate();
  }

  // ---- what the reporter wants

  /**
   * Let an observer observe, without a question.
   *
   * @param {string} by
   * @param {string} observer
   */
  allow(by, observer) {
    this.#check(by);
    this.authorise(observer);
  }

  /**
   * As `allow`, of an observer that the reporter has invited.
   *
   * @param {string} observer
   */
  authorise(observer) {
    if (!this.#guests.allow(observer)) throw new BadMessageError(NO_ROOM, CODES.TOO_LARGE);
    this.#accept(observer, ALLOWED);
  }

  /**
   * @param {string} by
   * @param {string} observer
   */
  expel(by, observer) {
    this.#check(by);
    this.#guests.expel(observer);
    const there = this.#all.get(observer);
    if (there && isActive(there)) this.#remove(observer, "unsubscribe", EXPELLED);
    else if (there) this.#refuse(observer, "refuse", CODES.FORBIDDEN, EXPELLED);
    this.#port.cutOff(observer, there?.manager ?? "", false);
  }

  /** @param {string} by */
  #check(by) {
    if (this.#isDeleted) throw new BadMessageError(DELETED, CODES.NOT_FOUND);
    if (by !== this.#object.reporter) throw new BadMessageError("only the reporter may", CODES.FORBIDDEN);
  }

  /**
   * @param {string} by
   * @param {Change} change
   */
  change(by, { attribute, value = null, attributeType, operation }) {
    this.#check(by);
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
    this.#check(by);
    if (valueAt(this.#object.data, attribute) !== undefined) this.change(by, { attribute });
  }

  /** @param {string} by */
  delete(by) {
    this.#check(by);
    this.#isDeleted = true;
    for (const [observer] of this.#waiting()) this.#refuse(observer, "object-deleted", CODES.NOT_FOUND, DELETED);
    this.#port.end(this.runtimes);
    this.#vacate();
  }

  /**
   * Runtimes of observers know that the object is deleted, or will not answer any more.
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
