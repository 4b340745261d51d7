/**
 * The reporter's end of a data object: observers, and changes to publish.
 * `fsm/sync/reporter.py` explains it.
 */

import { runtimeOf } from "../address.js";
import { CODES, MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED } from "../constants.js";
import { Entity } from "../machine.js";
import { changed, freeze, publishedChange, valueAt } from "../value.js";

/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../value.js").Change} Change */
/** @typedef {import("./copy.js").Published} Published */
/** @typedef {import("../machine.js").Step} Step */

/**
 * @typedef {{reporter: string, runtime: string, data: JsonObject, url: string, version: number,
 *   name?: string, schema?: string, resources?: string[], childrenObjects?: JsonObject,
 *   created?: string}} DataObject
 */

/**
 * @typedef {{on: "authorised", observer: string} | {on: "allow-asked", by: string, observer: string} |
 *   {on: "expel-asked", by: string, observer: string} |
 *   {on: "subscribe-asked", observer: string, manager: string, lease: number | null,
 *    version: number | null} |
 *   {on: "unsubscribe-asked", observer: string, manager: string} |
 *   {on: "lease-over", observer: string} |
 *   {on: "reporter-accepted", observer: string, question: number} |
 *   {on: "reporter-refused", observer: string, why: string, question: number} |
 *   {on: "change-asked", by: string, change: Change} |
 *   {on: "removal-asked", by: string, attribute: string} | {on: "delete-asked", by: string} |
 *   {on: "runtime-notified", runtime: string} | {on: "observers-notified"}} Input
 */

/**
 * @typedef {Step | {do: "row-changed", op: "add" | "del", table: string, key: string, val: string,
 *    writer: string} |
 *   {do: "granted", observer: string, snapshot: DataObject, lease: number | null,
 *    isRenewal: boolean} |
 *   {do: "renewed", observer: string, lease: number | null} |
 *   {do: "denied", observer: string, code: number, why: string} |
 *   {do: "reporter-asked", observer: string, patience: number, question: number} |
 *   {do: "obeyed"} | {do: "cut-off", observer: string, manager: string} |
 *   {do: "expired", observer: string, manager: string} | {do: "published", change: Published} |
 *   {do: "deleted", runtimes: string[]} | {do: "vacated"} |
 *   {do: "refused", code: number, why: string}} Effect
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

/** The reporter's end of one data object. */
export class ReporterCore {
  #object;
  #guests;
  /** @type {Map<string, Subscription>} */
  #all = new Map();
  #undecided = 0;
  #asked = 0;
  #isDeleted = false;

  /**
   * @param {DataObject} created
   * @param {string[]} [allowed]
   * @param {boolean} [isPublic]
   */
  constructor(created, allowed = [], isPublic = false) {
    this.#object = { ...created, data: freeze(created.data) };
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
    return [...this.#all.values()].filter((one) => !isActive(one)).map((one) => runtimeOf(one.manager));
  }

  #active() {
    return [...this.#all].filter(([, one]) => isActive(one));
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

  /**
   * @param {Input} input
   * @returns {Effect[]}
   */
  feed(input) {
    switch (input.on) {
      case "authorised":
        return this.#allow(input.observer);
      case "allow-asked":
      case "expel-asked":
        return this.#allowance(input);
      case "subscribe-asked":
        return this.#subscribe(input);
      case "unsubscribe-asked":
        return this.#leave(input.observer, input.manager);
      case "lease-over":
        return this.#expire(input.observer);
      case "reporter-accepted":
        return this.#isAsked(input) ? this.#accept(input.observer) : [];
      case "reporter-refused":
        if (!this.#isAsked(input)) return [];
        return this.#refuse(input.observer, "refuse", CODES.FORBIDDEN, input.why);
      case "change-asked":
        return this.#refusal(input.by) ?? this.#change(input.by, input.change);
      case "removal-asked": {
        const { attribute, by } = input;
        const isThere = valueAt(this.#object.data, attribute) !== undefined;
        return this.#refusal(by) ?? (isThere ? this.#change(by, { attribute }) : [{ do: "obeyed" }]);
      }
      case "delete-asked":
        return this.#refusal(input.by) ?? this.#delete();
      case "runtime-notified":
        return this.#notified([input.runtime]);
      case "observers-notified":
        return this.#notified(this.runtimes);
    }
  }

  // ---- observers

  /**
   * @param {Extract<Input, {on: "subscribe-asked"}>} asked
   * @returns {Effect[]}
   */
  #subscribe(asked) {
    const { observer, manager, lease, version } = asked;
    /**
     * @param {number} code
     * @param {string} why
     * @returns {Effect[]}
     */
    const denied = (code, why) => [{ do: "denied", observer, code, why }];
    if (this.#isDeleted) return denied(CODES.NOT_FOUND, DELETED);
    if (this.#all.has(observer)) return this.#again(asked);
    if (version === null) this.#guests.asksAnew(observer);
    else if (!this.#guests.mayRenew(observer)) return denied(CODES.FORBIDDEN, EXPELLED);
    const welcome = this.#guests.welcome(observer);
    const isAnswerable = welcome || this.#undecided < MAX_UNDECIDED;
    if (!isAnswerable || this.#all.size >= MAX_ALLOWED_OBSERVERS) return denied(CODES.UNAVAILABLE, CROWD);
    const entity = new Entity("object_subscription", `${this.#object.url}|${observer}`);
    this.#undecided += 1;
    this.#asked += 1;
    const question = this.#asked;
    this.#all.set(observer, { entity, manager, lease, question });
    const begun = entity.step("request");
    if (welcome) return [begun, ...this.#accept(observer, welcome)];
    return [begun, { do: "reporter-asked", observer, patience: entity.patience, question }];
  }

  /**
   * Take a retry, or a renewal: an active observer gets the object again, others wait on.
   *
   * @param {Extract<Input, {on: "subscribe-asked"}>} asked
   * @returns {Effect[]}
   */
  #again({ observer, manager, lease, version }) {
    const there = /** @type {Subscription} */ (this.#all.get(observer));
    const isAsBefore = there.manager === manager && there.lease === lease;
    there.manager = manager;
    there.lease = lease;
    if (!isActive(there)) return [];
    /** @type {Effect[]} */
    const steps = lease === null ? [] : [there.entity.step("renew")];
    if (isAsBefore && version === this.#object.version) return [...steps, { do: "renewed", observer, lease }];
    return [...steps, { do: "granted", observer, snapshot: this.#object, lease, isRenewal: true }];
  }

  /**
   * An answer to an older question does not count.
   *
   * @param {{observer: string, question: number}} decision
   */
  #isAsked({ observer, question }) {
    const there = this.#all.get(observer);
    if (!there || isActive(there)) return false;
    return there.question === question;
  }

  /**
   * Make a waiting observer active, before it is given the object; ignore others.
   *
   * @param {string} observer
   * @param {string} [why]
   * @returns {Effect[]}
   */
  #accept(observer, why = "") {
    const there = this.#all.get(observer);
    if (!there || isActive(there)) return [];
    this.#undecided -= 1;
    const { lease } = there;
    return [
      this.#row("add", observer),
      there.entity.step("accept", why),
      { do: "granted", observer, snapshot: this.#object, lease, isRenewal: false },
    ];
  }

  /**
   * Forget a waiting subscription, and answer it.
   *
   * @param {string} observer
   * @param {string} trigger
   * @param {number} code
   * @param {string} why
   * @returns {Effect[]}
   */
  #refuse(observer, trigger, code, why) {
    const { entity } = this.#take(observer);
    this.#undecided -= 1;
    return [entity.step(trigger, why), { do: "denied", observer, code, why }];
  }

  /**
   * Forget an active observer.
   *
   * @param {string} observer
   * @param {string} trigger
   * @param {string} [why]
   * @returns {Effect[]}
   */
  #remove(observer, trigger, why) {
    return [this.#take(observer).entity.step(trigger, why), this.#row("del", observer)];
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
   * @returns {Effect}
   */
  #row(op, observer) {
    return { do: "row-changed", op, table: "observers", key: this.#object.url, val: observer, writer: "sm" };
  }

  /**
   * @param {string} observer
   * @param {string} manager
   */
  #leave(observer, manager) {
    const there = this.#all.get(observer);
    if (there?.manager !== manager) return [];
    if (!isActive(there)) {
      return this.#refuse(observer, "unsubscribe", CODES.GONE, "the observer left before the decision");
    }
    return [...this.#remove(observer, "unsubscribe"), ...this.#vacated()];
  }

  /**
   * Remove an observer that has not renewed its subscription; it may subscribe again.
   *
   * @param {string} observer
   * @returns {Effect[]}
   */
  #expire(observer) {
    const there = this.#all.get(observer);
    if (!there || this.leaseOf(observer) === null) return [];
    const gone = this.#remove(observer, "expire");
    return [...gone, { do: "expired", observer, manager: there.manager }, ...this.#vacated()];
  }

  // ---- what the reporter wants

  /**
   * @param {{on: string, by: string, observer: string}} asked
   * @returns {Effect[]}
   */
  #allowance({ on, by, observer }) {
    const refused = this.#refusal(by);
    if (refused) return refused;
    const effects = on === "expel-asked" ? this.#expel(observer) : this.#allow(observer);
    return effects.some((one) => one.do === "refused") ? effects : [...effects, { do: "obeyed" }];
  }

  /**
   * @param {string} observer
   * @returns {Effect[]}
   */
  #allow(observer) {
    if (!this.#guests.allow(observer)) return [{ do: "refused", code: CODES.TOO_LARGE, why: NO_ROOM }];
    return this.#accept(observer, ALLOWED);
  }

  /**
   * @param {string} observer
   * @returns {Effect[]}
   */
  #expel(observer) {
    this.#guests.expel(observer);
    const there = this.#all.get(observer);
    if (!there) return [{ do: "cut-off", observer, manager: "" }];
    const gone = isActive(there)
      ? this.#remove(observer, "unsubscribe", EXPELLED)
      : this.#refuse(observer, "refuse", CODES.FORBIDDEN, EXPELLED);
    return [...gone, { do: "cut-off", observer, manager: there.manager }];
  }

  /**
   * @param {string} by
   * @returns {Effect[] | null}
   */
  #refusal(by) {
    if (this.#isDeleted) return [{ do: "refused", code: CODES.NOT_FOUND, why: DELETED }];
    if (by === this.#object.reporter) return null;
    return [{ do: "refused", code: CODES.FORBIDDEN, why: "only the reporter may" }];
  }

  /**
   * @param {string} by
   * @param {Change} change
   * @returns {Effect[]}
   */
  #change(by, { attribute, value = null, attributeType, operation }) {
    const version = this.#object.version + 1;
    const before = this.#object.data;
    const brought = value === null ? undefined : freeze(value);
    const asked = { attribute, value: brought, attributeType, operation };
    const data = freeze(changed(before, asked));
    this.#object = { ...this.#object, version, data };
    const change = { ...publishedChange(before, data, asked), version, source: by };
    return [{ do: "published", change }];
  }

  /** @returns {Effect[]} */
  #delete() {
    this.#isDeleted = true;
    const waiting = [...this.#all].filter(([, one]) => !isActive(one));
    const waited = waiting.flatMap(([observer]) =>
      this.#refuse(observer, "object-deleted", CODES.NOT_FOUND, DELETED));
    return [...waited, { do: "deleted", runtimes: this.runtimes }, ...this.#vacated()];
  }

  /**
   * @param {string[]} runtimes
   * @returns {Effect[]}
   */
  #notified(runtimes) {
    if (!this.#isDeleted || !this.#all.size) return [];
    const gone = this.#active().filter(([, one]) => runtimes.includes(runtimeOf(one.manager)));
    return [...gone.flatMap(([observer]) => this.#remove(observer, "object-deleted")), ...this.#vacated()];
  }

  /** @returns {Effect[]} */
  #vacated() {
    return this.#isDeleted && !this.#all.size ? [{ do: "vacated" }] : [];
  }
}

/** @param {Subscription} one */
const isActive = (one) => one.entity.state === "active";
