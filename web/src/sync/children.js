/**
 * The set of children of a data object, at its reporter and as a copy at observers; see
 * `fsm/sync/children.py`.
 */

import { CODES } from "../constants.js";
import * as constants from "../constants.js";
import { blake2b } from "../digest.js";
import { BadMessageError, isObject } from "../json.js";
import { depthOf, freeze, jsonSize, withoutAttribute } from "../value.js";

/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../message.js").Message} Message */
/** @typedef {"create" | "update" | "delete"} Act */
/** @typedef {{count: number, digest: string}} Sign */

/**
 * The newest children, which an object keeps; older ones leave. Without `seconds`, only for newer ones.
 * @typedef {{last: number, bytes: number, seconds?: number}} ChildWindow
 */

/**
 * The children that the reporter's end has removed, with the sign of the others; with a window, also
 * the number of children so far, and the greatest number of a child that has left.
 * @typedef {Sign & {ended: string[], created?: number, gone?: number}} ChildrenEnded
 */

/**
 * One operation of a creator on its own child; `version` is the id of the creator's message.
 * @typedef {{act: Act, name: string, creator: string, number: number, version: number,
 *   value: Json, removes: string | null, base: number}} ChildOp
 */

/**
 * The commands of a copy of children.
 * @typedef {object} ChildrenPort
 * @property {(name: string, value: Json, version: number) => void} shown
 * @property {(name: string) => void} gone
 * @property {(number: number) => void} read reads the whole object
 * @property {(act: Act, name: string) => void} sayAgain
 */

/** The refusal of an operation. @typedef {{code: number, why: string}} Denied */

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
 * Return the addresses to which changes of an object and of its children are sent.
 *
 * @param {string} url
 */
export const publishedOf = (url) => [`${url}/changes`, ...childrenOf(url)];

/**
 * Return the creator and number in the name of a child; null: the name is invalid.
 *
 * @param {unknown} name
 * @returns {{creator: string, number: number} | null}
 */
export function named(name) {
  const match = typeof name === "string" ? /^(.+)#([1-9][0-9]{0,15})$/s.exec(name) : null;
  return match && { creator: match[1], number: Number(match[2]) };
}

/**
 * Return the operation on a child in a creator's message; null: the sender may not do it.
 *
 * @param {Message} message
 * @returns {ChildOp | null}
 */
export function opIn({ id, type, from, body }) {
  const { resource: name, attribute, version: base } = body;
  const parts = named(name);
  if ((type !== "create" && type !== "update" && type !== "delete") || parts?.creator !== from) return null;
  const op = { act: type, name: String(name), ...parts, version: id, removes: null, base: 0 };
  if (type === "delete" && typeof attribute === "string" && Number.isInteger(base)) {
    return { ...op, act: "update", value: null, removes: attribute, base: Number(base) };
  }
  return { ...op, value: type === "delete" ? null : body.value ?? null };
}

/**
 * Return the operation on a child that the object reports in a body; null: invalid.
 *
 * @param {JsonObject} body
 * @returns {ChildOp | null}
 */
export function opOf({ resource: name, version, value = null }) {
  const parts = named(name);
  if (!parts || !Number.isInteger(version)) return null;
  const act = value === null ? "delete" : "update";
  return { act, name: String(name), ...parts, version: Number(version), value, removes: null, base: 0 };
}

/**
 * Return the window in the description of an object; null: it has none; an error: it is invalid.
 *
 * @param {Json | undefined} described
 * @returns {ChildWindow | null}
 */
export function windowIn(described = null) {
  if (described === null) return null;
  if (!isObject(described)) throw new BadMessageError("the window of children is no object");
  const { last = constants.WINDOW_CHILDREN, bytes = constants.WINDOW_BYTES, seconds = null } = described;
  const whole = (/** @type {string} */ name, /** @type {Json} */ value, /** @type {number} */ least, /** @type {number} */ most) => {
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
    throw new BadMessageError(`${name} of the window of children is no whole number from ${least} to ${most}`);
  };
  return {
    last: whole("last", last, 1, constants.WINDOW_CHILDREN),
    bytes: whole("bytes", bytes, constants.WINDOW_LEAST_BYTES, constants.WINDOW_BYTES),
    ...(seconds === null ? {} : { seconds: whole("seconds", seconds, 1, constants.MAX_ID) }),
  };
}

/**
 * Return the report of removed children in a body; null: it is invalid.
 *
 * @param {JsonObject} body
 * @returns {ChildrenEnded | null}
 */
export function endedIn({ count, digest, ended, created = null, gone = null }) {
  const isReport = Array.isArray(ended) && ended.every(named) && typeof digest === "string" &&
    [count, created ?? 0, gone ?? 0].every(Number.isInteger);
  return isReport ? /** @type {any} */ ({ count, digest, ended, created, gone }) : null;
}

/**
 * Return a whole number of an object in JSON; 0: it has none of that name.
 *
 * @param {Json | undefined} counts
 * @param {string} name
 */
export function wholeIn(counts, name) {
  const value = isObject(counts) ? counts[name] : 0;
  return Number.isInteger(value) ? Math.max(0, Number(value)) : 0;
}

/** Additional bytes for one child in the JSON of the whole object. */
export const ENTRY = 64;

/** The refusal of a change of a child that is no more. */
export const REMOVED = { code: CODES.GONE, why: "the child was removed from the object" };
const LATE = { code: CODES.CONFLICT, why: "this was said before, or something later was" };

/**
 * @param {string} name
 * @param {Json} value
 */
const sizeOf = (name, value) => jsonSize(value) + name.length;

/**
 * All children of one object, with limits of number and size for each creator and in total. With a
 * window, the oldest children leave instead: `trim` removes them.
 */
export class ChildSet {
  /** @type {Map<string, Kept>} */
  kept = new Map();
  /** @type {Map<string, {said: number, number: number, ended: number, count: number, size: number}>} */
  #creators = new Map();
  #size = 0;
  #digest = 0n;

  /** @param {ChildWindow | null} window the children that the object keeps; null: all */
  constructor(window = null) {
    this.window = window;
  }

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
    const entry = this.window ? 2 * ENTRY : ENTRY;
    return !this.kept.size || this.#size + entry * this.kept.size + jsonSize(data) <= constants.VALUE_BYTES;
  }

  /**
   * Return all children in the form in which the whole object contains them.
   *
   * @returns {JsonObject}
   */
  shown() {
    return Object.fromEntries([...this.kept].map(([name, { value, version }]) => [name, { value, version }]));
  }

  /** @param {string} who */
  #creator(who) {
    return this.#creators.get(who) ?? { said: 0, number: 0, ended: 0, count: 0, size: 0 };
  }

  /**
   * Apply the operation of a creator; ignore an operation older than the last one.
   *
   * @param {ChildOp} op
   * @returns {boolean | Denied} whether it has changed a child, or why it may not
   */
  take(op) {
    const creator = this.#creator(op.creator);
    const kept = this.kept.get(op.name);
    if (op.version <= creator.said) {
      return op.act === "create" && kept?.version !== op.version ? LATE : false;
    }
    let { value } = op;
    if (op.removes !== null) {
      if (kept?.version !== op.base) return false;
      value = withoutAttribute(kept.value, op.removes);
    }
    const refusal = this.refusal({ ...op, value });
    if (refusal) return refusal;
    this.#creators.delete(op.creator);
    this.#creators.set(op.creator, {
      ...creator,
      said: op.version,
      number: Math.max(creator.number, op.number),
    });
    this.#forgetIdle(op.creator);
    const { name, version } = op;
    if (op.act === "delete") return this.#drop(name);
    this.#put(name, { creator: op.creator, value: freeze(value), version, size: sizeOf(name, value) });
    return true;
  }

  /**
   * Return why an operation is refused; null: it is permitted.
   *
   * @param {ChildOp} op
   * @returns {Denied | null}
   */
  refusal({ act, name, creator: who, number, value }) {
    if (act === "delete") return null;
    const creator = this.#creator(who);
    const kept = this.kept.get(name);
    // A creator that does not know whether its child was created sends it again.
    if (act === "create" && number <= creator.number && !kept) {
      return { code: CODES.CONFLICT, why: "the numbers of children only grow" };
    }
    if (!kept && number <= creator.ended) return REMOVED;
    const code = CODES.TOO_LARGE;
    if (depthOf(value, constants.CHILD_DEPTH) > constants.CHILD_DEPTH) {
      return { code, why: `its value is nested deeper than ${constants.CHILD_DEPTH}` };
    }
    const more = sizeOf(name, value) - (kept?.size ?? 0);
    const added = kept ? 0 : 1;
    /** @type {[number, number, string][]} */
    const bounds = [[jsonSize(value), constants.CHILD_BYTES, "a child of more than # bytes"]];
    if (!this.window) {
      bounds.push(
        [creator.count + added, constants.CHILDREN_OF_CREATOR, "more than # children of a creator"],
        [creator.size + more, constants.CREATOR_BYTES, "more than # bytes of a creator"],
        [this.kept.size + added, constants.CHILDREN_OF_OBJECT, "more than # children"],
        [this.#size + more, constants.CHILDREN_BYTES, "more than # bytes of children"],
      );
    }
    const [wanted, bound, text] = bounds.find(([wanted, bound]) => wanted > bound) ?? [0, 0, ""];
    return text ? { code, why: `no object has ${text.replace("#", String(bound))}, this would be ${wanted}` } : null;
  }

  /**
   * @param {string} name
   * @param {Kept} kept
   */
  #put(name, kept) {
    const former = this.kept.get(name);
    if (former) this.#count(name, former, -1);
    this.kept.set(name, kept);
    this.#count(name, kept, 1);
  }

  /** @param {string} name */
  #drop(name) {
    const kept = this.kept.get(name);
    if (kept) this.#count(name, kept, -1);
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
   * Remove a child for good, without its creator.
   *
   * @param {string} name
   * @returns {boolean} whether it was in the set
   */
  end(name) {
    const { creator: who, number } = named(name) ?? { creator: "", number: 0 };
    const creator = this.#creator(who);
    this.#creators.set(who, { ...creator, ended: Math.max(creator.ended, number) });
    const isPresent = this.#drop(name);
    this.#forgetIdle();
    return isPresent;
  }

  /**
   * Forget the creators without children that have been silent for longest, but not this one.
   *
   * @param {string} [but]
   */
  #forgetIdle(but) {
    while (this.#creators.size > constants.CREATORS_KEPT) {
      const idle = [...this.#creators].find(([who, { count }]) => !count && who !== but);
      if (!idle) return;
      this.#creators.delete(idle[0]);
    }
  }

  /**
   * Remove the oldest children that exceed the window; return their names, in order.
   *
   * @param {number} [children] number of children that may exceed it
   * @param {number} [size] number of bytes that they may exceed it by
   */
  trim(children = 0, size = 0) {
    const { last, bytes } = this.window ?? { last: Infinity, bytes: Infinity };
    const ended = [];
    while (this.kept.size > last + children || this.#size > bytes + size) {
      const [oldest] = this.kept.keys();
      this.end(oldest);
      ended.push(oldest);
    }
    return ended;
  }

  /**
   * Replace all children by these; return the names of those that changed.
   *
   * @param {Map<string, Kept>} others
   */
  become(others) {
    for (const creator of this.#creators.values()) creator.said = 0;
    const gone = [...this.kept.keys()].filter((name) => !others.has(name));
    for (const name of gone) this.#drop(name);
    const fresh = [...others.keys()].filter((name) => this.kept.get(name)?.version !== others.get(name)?.version);
    for (const [name, kept] of others) {
      if (this.kept.get(name)?.version !== kept.version) this.#put(name, kept);
      const creator = /** @type {{said: number, number: number}} */ (this.#creators.get(kept.creator));
      creator.said = Math.max(creator.said, kept.version);
      creator.number = Math.max(creator.number, named(name)?.number ?? 0);
    }
    // All copies of a window have the order of the reporter's end.
    if (this.window) this.kept = new Map([...others.keys()].map((name) => [name, /** @type {Kept} */ (this.kept.get(name))]));
    return [...gone, ...fresh];
  }
}

/**
 * Read the children in a whole object; skip invalid ones, and those beyond the window or the limits.
 *
 * @param {Json | undefined} shown
 * @param {ChildWindow | null} [window]
 * @returns {Map<string, Kept>}
 */
export function childrenIn(shown, window = null) {
  const children = new Map();
  const most = window?.last ?? constants.CHILDREN_OF_OBJECT;
  let room = window?.bytes ?? constants.CHILDREN_BYTES;
  for (const [name, entry] of Object.entries(isObject(shown) ? shown : {})) {
    const read = named(name);
    if (!read || !isObject(entry)) continue;
    const value = entry.value ?? null;
    const size = sizeOf(name, value);
    if (size > room) continue;
    if (children.size === most) break;
    const version = Number.isInteger(entry.version) ? Number(entry.version) : 0;
    children.set(name, { creator: read.creator, value: freeze(value), version, size });
    room -= size;
  }
  return children;
}

/** Number of earlier digests that a copy remembers, to recognise a late one. */
const SIGNS = 256;
/** Changes during a read that are kept; beyond it the oldest are dropped. */
const HEARD = 1000;

/** Copy of the children of one object, which detects missing changes by digests. */
export class ChildrenCopyCore {
  #keeper;
  #port;
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
  /** Number of children that left the window before this copy had them. */
  missed = 0;
  /** Number of children so far, as of the last agreement with the reporter's end. @type {number | null} */
  #created = null;
  /** Number of children that are new since then. */
  #fresh = 0;
  /** Children that are new since the begin of a read. @type {Set<string>} */
  #unread = new Set();
  /** Children that the reporter's end has removed since the begin of a read. @type {string[]} */
  #ended = [];

  /**
   * @param {string} keeper the hyperty, whose children the copy knows best
   * @param {ChildrenPort} port
   */
  constructor(keeper, port) {
    this.#keeper = keeper;
    this.#port = port;
    this.#note();
  }

  /** When `timeOver` is due. */
  get deadline() {
    return Math.min(this.#due, this.#signBy);
  }

  /**
   * Apply an operation of a creator to the copy.
   *
   * @param {ChildOp} op
   * @param {number} now
   * @param {boolean} [isReported] whether the reporter's end says so
   */
  take(op, now, isReported = false) {
    const isOwn = op.creator === this.#keeper;
    // Of its own children a copy takes nobody's word but its hyperty's.
    if (isReported && isOwn) return;
    if (this.#heard) {
      this.#heard.push(op);
      if (this.#heard.length > HEARD) this.#heard.shift();
    }
    if (isOwn && op.act === "delete") {
      this.#deleted.add(op.name);
      if (this.#deleted.size > constants.CHILDREN_OF_CREATOR) this.#deleted.delete([...this.#deleted][0]);
    }
    const isNew = !this.children.kept.has(op.name);
    const taken = this.children.take(op);
    // Reports of what has left the window may be lost; the copy does not grow without them.
    const trimmed = this.children.trim(constants.CHILDREN_OF_OBJECT, constants.CHILDREN_BYTES);
    this.#note();
    // A reporter's end gives no signs of children that it never had.
    if (taken && !isReported && !isOwn) this.#signBy = Math.min(this.#signBy, now + constants.QUIET);
    this.#settle();
    // One more than fits here the reporter's end has refused, too.
    if (taken === true) {
      if (isNew) this.#fresh += 1;
      if (isNew && this.#heard && this.#unread.size < HEARD) this.#unread.add(op.name);
      this.#changed(op.name);
    }
    for (const name of trimmed) this.#changed(name);
  }

  /** @param {string} name */
  #changed(name) {
    const kept = this.children.kept.get(name);
    if (kept) this.#port.shown(name, kept.value, kept.version);
    else this.#port.gone(name);
  }

  /** @param {number} now */
  doubt(now) {
    this.#due = Math.min(this.#due, now);
    this.#isCheck = false;
    this.#isDoubted = true;
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
   * Compare the copy with the digest of the children that the reporter has sent.
   *
   * @param {Sign} given
   * @param {number} now
   */
  hearSign(given, now) {
    const sign = keyOf(given);
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

  /**
   * Remove a child, as the reporter's end has removed it.
   *
   * @param {string} name
   */
  end(name) {
    this.#deleted.delete(name);
    this.#ended.push(name);
    if (this.#ended.length > HEARD) this.#ended.shift();
    if (this.children.end(name)) this.#changed(name);
  }

  /**
   * Remove the children that the reporter's end has removed, also those of the own hyperty.
   *
   * @param {ChildrenEnded} report
   * @param {number} now
   */
  takeEnded({ ended, created, gone, ...sign }, now) {
    for (const name of ended) this.end(name);
    this.#note();
    this.hearSign(sign, now);
    if (keyOf(sign) === keyOf(this.children.sign)) this.#agree(created, gone);
  }

  /**
   * Count the children that were created since the last agreement, and that this copy lacked.
   *
   * @param {number | null} [created] number of children of the object so far; null: it has no window
   * @param {number | null} [gone] the greatest number of a child that has left the window
   * @param {number} [fresh] number of children that this copy has before the reporter's end
   */
  #agree(created = null, gone = null, fresh = 0) {
    if (created === null || gone === null) return;
    if (this.#created !== null) {
      const lacking = created - this.#created - (this.#fresh - fresh);
      // What its creator has deleted is not missed.
      this.missed += Math.max(0, Math.min(lacking, gone - this.#created));
    }
    this.#created = created;
    this.#fresh = fresh;
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

  /** @param {number} now */
  timeOver(now) {
    if (now < this.deadline) return;
    // While it is a check, nothing but the silence of the reporter asks for it.
    this.#isCheck ||= now < this.#due;
    this.#signBy = Infinity;
    this.#reads += 1;
    this.#ended = [];
    this.#unread.clear();
    this.#heard = [];
    this.#pause = Math.min(2 * this.#pause, constants.REPEAT_LAST);
    this.#due = now + constants.REPEAT_LAST;
    this.#port.read(this.#reads);
  }

  /**
   * @param {number} read number of the read
   * @param {number} now
   */
  readFailed(read, now) {
    if (read !== this.#reads || !this.#heard) return;
    this.#heard = null;
    if (this.#isCheck) this.#signBy = now + this.#pause;
    else this.#due = now + this.#pause;
  }

  /**
   * Replace the copy by the children in the whole object.
   *
   * @param {JsonObject | null} shown null: the object was read without them
   * @param {number} now
   */
  become(shown, now) {
    const since = this.#heard ?? [];
    const isCheck = this.#isCheck;
    this.#heard = null;
    this.#isCheck = false;
    this.#isDoubted = false;
    this.#due = Infinity;
    if (shown === null) {
      if (this.#missed !== null) this.#due = now + this.#pause;
      // Children of a window are read in pages.
      if (this.children.window) this.#due = now + (this.#reads ? this.#pause : 0);
      return;
    }
    const reported = childrenIn(shown[RESOURCES], this.children.window);
    // A reporter that gives no versions gives no signs either: what was heard counts.
    if (isCheck && ![...reported.values()].every((kept) => kept.version)) return;
    this.#missed = null;
    const again = this.#unknown(reported, new Set(since.map((op) => op.name)));
    this.#fresh += [...reported.keys()].filter((name) => !this.children.kept.has(name)).length;
    for (const name of this.children.become(reported)) this.#changed(name);
    if (isObject(shown.window)) {
      const fresh = [...this.#unread].filter((name) => !reported.has(name)).length;
      this.#agree(wholeIn(shown.window, "created"), wholeIn(shown.window, "gone"), fresh);
    }
    for (const op of since) {
      const taken = this.children.take(op.act === "delete" ? op : { ...op, act: "update" });
      if (taken === true) this.#changed(op.name);
    }
    for (const name of this.#ended) if (this.children.end(name)) this.#changed(name);
    this.#note();
    for (const [act, name] of again) this.#port.sayAgain(act, name);
  }

  /**
   * Keep the hyperty's own operations that the reporter lacks, and send them again.
   *
   * @param {Map<string, Kept>} reported
   * @param {Set<string>} since
   * @returns {[Act, string][]}
   */
  #unknown(reported, since) {
    /** @type {[Act, string][]} */
    const again = [];
    for (const [name, mine] of this.children.kept) {
      const theirs = reported.get(name)?.version ?? -1;
      if (mine.creator !== this.#keeper || theirs >= mine.version || since.has(name)) continue;
      // Its creation was acknowledged, so it has left the window meanwhile.
      if (theirs < 0 && this.children.window) continue;
      if (!this.#mayAgain(name)) continue;
      reported.set(name, mine);
      again.push(["update", name]);
    }
    for (const name of this.#deleted) {
      if (!reported.has(name) || since.has(name) || !this.#mayAgain(name)) continue;
      reported.delete(name);
      again.push(["delete", name]);
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
