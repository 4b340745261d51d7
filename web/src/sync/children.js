/**
 * Children of a data object, at its reporter's end and at a hyperty:
 * `fsm/sync/children.py` and `fsm/sync/children_copy.py` explain them.
 */

import { CODES } from "../constants.js";
import * as constants from "../constants.js";
import { blake2b } from "../digest.js";
import { isObject } from "../json.js";
import { depthOf, freeze, jsonSize, withoutAttribute } from "../value.js";

/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../message.js").Message} Message */
/** @typedef {"create" | "update" | "delete"} Act */
/** @typedef {{count: number, digest: string}} Sign */

/**
 * One operation of a creator on a child of its own; `version` is the id of its message.
 * @typedef {{act: Act, name: string, creator: string, number: number, version: number,
 *   value: Json, removes: string | null, base: number}} ChildOp
 */

/**
 * @typedef {{do: "child-shown", name: string, value: Json, version: number} |
 *   {do: "child-gone", name: string} | {do: "child-refused", code: number, why: string} |
 *   {do: "children-needed", read: number} |
 *   {do: "said-again", act: Act, name: string, value: Json}} Effect
 */

/** @typedef {{creator: string, value: Json, version: number, size: number}} Kept */

/** The one list of children that an object has. */
export const RESOURCES = "resources";

/**
 * Return the address of an object's children; none: it has no children.
 *
 * @param {string} url
 */
export const childrenOf = (url) => (url.startsWith("connection:") ? [] : [`${url}/children/${RESOURCES}`]);

/**
 * Return the addresses at which the observers of an object hear of it.
 *
 * @param {string} url
 */
export const publishedOf = (url) => [`${url}/changes`, ...childrenOf(url)];

/**
 * Return the creator of a child and its number; null: it is no such name.
 *
 * @param {unknown} name
 * @returns {{creator: string, number: number} | null}
 */
export function named(name) {
  const found = typeof name === "string" ? /^(.+)#([1-9][0-9]{0,15})$/s.exec(name) : null;
  return found && { creator: found[1], number: Number(found[2]) };
}

/**
 * Return the operation in a message; null: its sender may not do it.
 *
 * @param {Message} message
 * @returns {ChildOp | null}
 */
export function opIn({ id, type, from, body }) {
  const { resource: name, attribute, version: base } = body;
  const found = named(name);
  if ((type !== "create" && type !== "update" && type !== "delete") || found?.creator !== from) return null;
  const op = { act: type, name: String(name), ...found, version: id, removes: null, base: 0 };
  if (type === "delete" && typeof attribute === "string" && Number.isInteger(base)) {
    return { ...op, act: "update", value: null, removes: attribute, base: Number(base) };
  }
  return { ...op, value: type === "delete" ? null : body.value ?? null };
}

/**
 * Return the operation that the object of a child reports; null: it reports none.
 *
 * @param {JsonObject} body
 * @returns {ChildOp | null}
 */
export function opOf({ resource: name, version, value = null }) {
  const found = named(name);
  if (!found || !Number.isInteger(version)) return null;
  const act = value === null ? "delete" : "update";
  return { act, name: String(name), ...found, version: Number(version), value, removes: null, base: 0 };
}

/** Bytes around one child where the whole object shows it. */
const ENTRY = 64;

/** @type {Effect} */
const LATE = {
  do: "child-refused",
  code: CODES.CONFLICT,
  why: "this was said before, or something later was",
};

/**
 * @param {string} name
 * @param {Json} value
 */
const sizeOf = (name, value) => jsonSize(value) + name.length;

/** All children of one object; bounded in number and size, per creator and together. */
export class ChildSet {
  /** @type {Map<string, Kept>} */
  kept = new Map();
  /** @type {Map<string, {said: number, number: number, count: number, size: number}>} */
  #creators = new Map();
  #size = 0;
  #digest = 0n;

  /** @returns {Sign} */
  get sign() {
    return { count: this.kept.size, digest: this.#digest.toString(16).padStart(16, "0") };
  }

  /**
   * Return whether one message can hold these children beside the value of their object.
   *
   * @param {JsonObject} data
   */
  fitsBeside(data) {
    return !this.kept.size || this.#size + ENTRY * this.kept.size + jsonSize(data) <= constants.VALUE_BYTES;
  }

  /**
   * Return all children as the whole object shows them.
   *
   * @returns {JsonObject}
   */
  shown() {
    return Object.fromEntries([...this.kept].map(([name, { value, version }]) => [name, { value, version }]));
  }

  /** @param {string} who */
  #creator(who) {
    return this.#creators.get(who) ?? { said: 0, number: 0, count: 0, size: 0 };
  }

  /**
   * Apply the operation of a creator; a late one changes nothing.
   *
   * @param {ChildOp} op
   * @returns {Effect | null}
   */
  take(op) {
    const creator = this.#creator(op.creator);
    const there = this.kept.get(op.name);
    if (op.version <= creator.said) {
      return op.act === "create" && there?.version !== op.version ? LATE : null;
    }
    let { value } = op;
    if (op.removes !== null) {
      if (there?.version !== op.base) return null;
      value = withoutAttribute(there.value, op.removes);
    }
    const refusal = this.refusal({ ...op, value });
    if (refusal) return refusal;
    this.#creators.delete(op.creator);
    this.#creators.set(op.creator, {
      ...creator,
      said: op.version,
      number: Math.max(creator.number, op.number),
    });
    if (this.#creators.size > constants.CREATORS_KEPT) {
      const idle = [...this.#creators].find(([, one]) => !one.count);
      if (idle) this.#creators.delete(idle[0]);
    }
    const { name, version } = op;
    if (op.act === "delete") return this.#drop(name) ? { do: "child-gone", name } : null;
    this.#put(name, { creator: op.creator, value: freeze(value), version, size: sizeOf(name, value) });
    return { do: "child-shown", name, value, version };
  }

  /**
   * Return why an operation may not be done; null: it may.
   *
   * @param {ChildOp} op
   * @returns {Extract<Effect, {do: "child-refused"}> | null}
   */
  refusal({ act, name, creator: who, number, value }) {
    if (act === "delete") return null;
    const creator = this.#creator(who);
    const there = this.kept.get(name);
    // A creator that does not know whether its child was created sends it again.
    if (act === "create" && number <= creator.number && !there) {
      return { do: "child-refused", code: CODES.CONFLICT, why: "the numbers of children only grow" };
    }
    const code = CODES.TOO_LARGE;
    if (depthOf(value, constants.CHILD_DEPTH) > constants.CHILD_DEPTH) {
      return { do: "child-refused", code, why: `its value is nested deeper than ${constants.CHILD_DEPTH}` };
    }
    const more = sizeOf(name, value) - (there?.size ?? 0);
    const one = there ? 0 : 1;
    /** @type {[number, number, string][]} */
    const bounds = [
      [jsonSize(value), constants.CHILD_BYTES, `a child of more than ${constants.CHILD_BYTES} bytes`],
      [creator.count + one, constants.CHILDREN_OF_CREATOR, `more than ${constants.CHILDREN_OF_CREATOR} children of one creator`],
      [creator.size + more, constants.CREATOR_BYTES, `more than ${constants.CREATOR_BYTES} bytes of one creator`],
      [this.kept.size + one, constants.CHILDREN_OF_OBJECT, `more than ${constants.CHILDREN_OF_OBJECT} children`],
      [this.#size + more, constants.CHILDREN_BYTES, `more than ${constants.CHILDREN_BYTES} bytes of children`],
    ];
    const broken = bounds.find(([wanted, bound]) => wanted > bound);
    return broken ? { do: "child-refused", code, why: `no object has ${broken[2]}` } : null;
  }

  /**
   * @param {string} name
   * @param {Kept} kept
   */
  #put(name, kept) {
    const there = this.kept.get(name);
    if (there) this.#count(name, there, -1);
    this.kept.set(name, kept);
    this.#count(name, kept, 1);
  }

  /** @param {string} name */
  #drop(name) {
    const there = this.kept.get(name);
    if (there) this.#count(name, there, -1);
    return this.kept.delete(name);
  }

  /**
   * @param {string} name
   * @param {Kept} kept
   * @param {1 | -1} sign
   */
  #count(name, { creator: who, size, version }, sign) {
    const creator = this.#creator(who);
    this.#creators.set(who, creator);
    creator.count += sign;
    creator.size += sign * size;
    this.#size += sign * size;
    const digest = BigInt(`0x${blake2b(`${name} ${version}`)}`);
    this.#digest = BigInt.asUintN(64, this.#digest + BigInt(sign) * digest);
  }

  /**
   * Have exactly these children from now on; return what is new about it.
   *
   * @param {Map<string, Kept>} others
   * @returns {Effect[]}
   */
  become(others) {
    for (const creator of this.#creators.values()) creator.said = 0;
    /** @type {Effect[]} */
    const found = [];
    for (const name of [...this.kept.keys()].filter((one) => !others.has(one))) {
      this.#drop(name);
      found.push({ do: "child-gone", name });
    }
    for (const [name, kept] of others) {
      if (this.kept.get(name)?.version !== kept.version) {
        this.#put(name, kept);
        found.push({ do: "child-shown", name, value: kept.value, version: kept.version });
      }
      const creator = /** @type {{said: number, number: number}} */ (this.#creators.get(kept.creator));
      creator.said = Math.max(creator.said, kept.version);
      creator.number = Math.max(creator.number, named(name)?.number ?? 0);
    }
    return found;
  }
}

/**
 * Read the children that the whole object shows; what is none, or too much, is left out.
 *
 * @param {Json | undefined} shown
 * @returns {Map<string, Kept>}
 */
export function childrenIn(shown) {
  const found = new Map();
  let room = constants.CHILDREN_BYTES;
  for (const [name, entry] of Object.entries(isObject(shown) ? shown : {})) {
    const read = named(name);
    if (!read || !isObject(entry)) continue;
    const value = entry.value ?? null;
    const size = sizeOf(name, value);
    if (size > room) continue;
    if (found.size === constants.CHILDREN_OF_OBJECT) break;
    const version = Number.isInteger(entry.version) ? Number(entry.version) : 0;
    found.set(name, { creator: read.creator, value: freeze(value), version, size });
    room -= size;
  }
  return found;
}

/** Signs of its own past by which a copy knows that it is not behind. */
const SIGNS = 256;
/** Changes during a read that are kept; then the oldest go. */
const HEARD = 1000;

/**
 * @typedef {{on: "child-said" | "child-reported", op: ChildOp} | {on: "sign-heard", sign: Sign} |
 *   {on: "all-children", shown: JsonObject | null} | {on: "children-unread", read: number} |
 *   {on: "children-doubted"} | {on: "children-time-over"}} Input
 */

/** A copy of the children of one object, which finds its own gaps. */
export class ChildrenCopyCore {
  #keeper;
  children = new ChildSet();
  /** @type {Map<string, number>} */
  #past = new Map();
  #number = 0;
  #latest = 0;
  /** @type {string | null} */
  #missed = null;
  #due = Infinity;
  #signBy = Infinity;
  #isCheck = false;
  #isDoubted = false;
  #pause = constants.READ_PAUSE;
  #reads = 0;
  /** @type {ChildOp[] | null} */
  #heard = [];
  /** @type {Set<string>} */
  #deleted = new Set();
  /** @type {Map<string, number>} */
  #again = new Map();

  /** @param {string} keeper the hyperty, whose children the copy knows best */
  constructor(keeper) {
    this.#keeper = keeper;
    this.#note();
  }

  /** When it is to be fed `children-time-over`. */
  get deadline() {
    return Math.min(this.#due, this.#signBy);
  }

  /**
   * @param {Input} input
   * @param {number} now
   * @returns {Effect[]}
   */
  feed(input, now) {
    switch (input.on) {
      case "child-reported":
        // Of its own children a copy takes nobody's word but its hyperty's.
        if (input.op.creator === this.#keeper) return [];
      // falls through
      case "child-said": {
        const taken = this.#take(input.op);
        const isVouched = input.on === "child-reported" || input.op.creator === this.#keeper;
        // A reporter's end gives no signs of children that it never had.
        if (taken && !isVouched) this.#signBy = Math.min(this.#signBy, now + constants.QUIET);
        this.#settle();
        // One more than fits here the reporter's end has refused, too.
        return taken && taken.do !== "child-refused" ? [taken] : [];
      }
      case "sign-heard":
        this.#hear(keyOf(input.sign), now);
        return [];
      case "all-children":
        return this.#read(input.shown, now);
      case "children-unread":
        if (input.read === this.#reads && this.#heard) {
          this.#heard = null;
          if (this.#isCheck) this.#signBy = now + this.#pause;
          else this.#due = now + this.#pause;
        }
        return [];
      case "children-doubted":
        this.#due = Math.min(this.#due, now);
        this.#isCheck = false;
        this.#isDoubted = true;
        return [];
      case "children-time-over":
        return this.#timeOver(now);
    }
  }

  /** @param {ChildOp} op */
  #take(op) {
    if (this.#heard) {
      this.#heard.push(op);
      if (this.#heard.length > HEARD) this.#heard.shift();
    }
    if (op.creator === this.#keeper && op.act === "delete") {
      this.#deleted.add(op.name);
      if (this.#deleted.size > constants.CHILDREN_OF_CREATOR) this.#deleted.delete([...this.#deleted][0]);
    }
    const taken = this.children.take(op);
    this.#note();
    return taken;
  }

  /** Remember the present state of the copy, the newest last. */
  #note() {
    this.#number += 1;
    const sign = keyOf(this.children.sign);
    this.#past.delete(sign);
    this.#past.set(sign, this.#number);
    if (this.#past.size > SIGNS) this.#past.delete([...this.#past.keys()][0]);
  }

  /**
   * @param {string} sign
   * @param {number} now
   */
  #hear(sign, now) {
    this.#signBy = Infinity;
    this.#isCheck = false;
    const number = this.#past.get(sign) ?? 0;
    const isAhead = number > this.#latest;
    this.#latest = Math.max(this.#latest, number);
    if (sign === keyOf(this.children.sign)) {
      this.#missed = null;
      this.#isDoubted = false;
      this.#pause = constants.READ_PAUSE;
      this.#again.clear();
    } else if (isAhead) this.#missed = null;
    else {
      this.#missed = sign;
      if (!this.#heard) this.#due = Math.min(this.#due, now + this.#pause);
    }
    this.#settle();
  }

  /** End the wait if the missing children have come. */
  #settle() {
    if (this.#missed !== null) {
      if (this.#missed !== keyOf(this.children.sign)) return;
      this.#missed = null;
      this.#signBy = Infinity;
    }
    if (!this.#heard && !this.#isDoubted) this.#due = Infinity;
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #timeOver(now) {
    if (now < this.deadline) return [];
    // While it is a check, nothing but the silence of the reporter asks for it.
    this.#isCheck ||= now < this.#due;
    this.#signBy = Infinity;
    this.#reads += 1;
    this.#heard = [];
    this.#pause = Math.min(2 * this.#pause, constants.REPEAT_LAST);
    this.#due = now + constants.REPEAT_LAST;
    return [{ do: "children-needed", read: this.#reads }];
  }

  /**
   * @param {JsonObject | null} shown
   * @param {number} now
   * @returns {Effect[]}
   */
  #read(shown, now) {
    const since = this.#heard ?? [];
    const isCheck = this.#isCheck;
    this.#heard = null;
    this.#isCheck = false;
    this.#isDoubted = false;
    this.#due = Infinity;
    if (shown === null) {
      if (this.#missed !== null) this.#due = now + this.#pause;
      return [];
    }
    const there = childrenIn(shown[RESOURCES]);
    // A reporter that gives no versions gives no signs either: what was heard counts.
    if (isCheck && ![...there.values()].every((kept) => kept.version)) return [];
    this.#missed = null;
    const again = this.#saidAgain(there, new Set(since.map((op) => op.name)));
    const effects = this.children.become(there);
    for (const op of since) {
      const taken = this.children.take(op.act === "delete" ? op : { ...op, act: "update" });
      if (taken && taken.do !== "child-refused") effects.push(taken);
    }
    this.#note();
    return [...effects, ...again];
  }

  /**
   * Keep, and send again, what the keeper has done and the reporter's end does not show.
   *
   * @param {Map<string, Kept>} there
   * @param {Set<string>} since
   * @returns {Effect[]}
   */
  #saidAgain(there, since) {
    /** @type {Effect[]} */
    const again = [];
    for (const [name, mine] of this.children.kept) {
      const theirs = there.get(name)?.version ?? -1;
      if (mine.creator !== this.#keeper || theirs >= mine.version || since.has(name)) continue;
      if (this.#mayAgain(name)) {
        there.set(name, mine);
        again.push({ do: "said-again", act: "update", name, value: mine.value });
      }
    }
    for (const name of this.#deleted) {
      if (there.has(name) && !since.has(name) && this.#mayAgain(name)) {
        there.delete(name);
        again.push({ do: "said-again", act: "delete", name, value: null });
      }
    }
    return again;
  }

  /** @param {string} name */
  #mayAgain(name) {
    const count = (this.#again.get(name) ?? 0) + 1;
    this.#again.set(name, count);
    return count <= constants.REASSERTIONS;
  }
}

/** @param {Sign} sign */
const keyOf = ({ count, digest }) => `${count} ${digest}`;
