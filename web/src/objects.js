/** The interface of a hyperty to data objects: objects that it reports, and that it observes. */

import { domainOf, isBelow } from "./address.js";
import { sleep } from "./clock.js";
import { ABOUT_BYTES, BUSY_PAUSE, CHILD_TRIES, CODES, WINDOW_CHILDREN } from "./constants.js";
import { Host } from "./host.js";
import { checked, Refusal } from "./hyperty.js";
import { BadMessageError, byteLength, checkSize, isObject, jsonOf, numberOf, textOf } from "./json.js";
import { codeOf, isSuccess, reasonIn, refuse, replyTo, viaOf } from "./message.js";
import { valueDigest } from "./trace.js";
import { canBeSet, changed, changeIn, checkedValue, checkPath, described } from "./value.js";
import { ChildrenCopyCore, childrenOf, endedIn, named, opIn, opOf, RESOURCES, wholeIn, windowIn } from "./sync/children.js";
import { ObserverCore } from "./sync/copy.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./message.js").MessageType} MessageType */
/** @typedef {import("./value.js").Change} Change */

/**
 * The functions of its runtime that the objects of a hyperty use.
 * @typedef {object} ObjectHost
 * @property {string} url address of the hyperty
 * @property {string} runtime
 * @property {Pick<import("./bus.js").Port, "post" | "request" | "ask">} port
 * @property {(from: string) => number} nextId
 * @property {import("./trace.js").Trace} trace
 * @property {import("./clock.js").Clock} clock
 */

/** Reply codes of routers that do not show whether a new child was created. */
const UNDECIDED = /** @type {number[]} */ ([CODES.TIMEOUT, CODES.UNAVAILABLE]);
/** Reply codes after which a read is repeated. */
const PASSING = [CODES.TIMEOUT, CODES.INTERNAL, CODES.BAD_BACKEND, CODES.UNAVAILABLE, CODES.BACKEND_TIMEOUT];

const LEAVES = "the observer leaves";
const SCHEMAS = /** @type {Record<string, string>} */ ({ comm: "Communication", ctxt: "Context" });

/**
 * @template {Record<string, unknown>} Events the value of each event, by its name
 */
class Emitter {
  /** @type {Map<unknown, Set<(value: any) => void>>} */
  #listeners = new Map();

  /**
   * Call a function for each event of a name from now on.
   *
   * @template {keyof Events} N
   * @param {N} name
   * @param {(value: Events[N]) => void} listener
   * @returns {() => void} ends that
   */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /**
   * @template {keyof Events} N
   * @param {N} name
   * @param {Events[N]} value
   */
  emit(name, value) {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        listener(value);
      } catch (error) {
        console.error(`protofly: a listener of ${String(name)} failed`, error);
      }
    }
  }
}

/**
 * @param {Message} answer
 */
function granted(answer) {
  if (!isSuccess(answer)) throw new Refusal(codeOf(answer), reasonIn(answer));
  return answer;
}

/**
 * Read a whole object, or a page of its children; repeat by the node if the object cannot verify the
 * reader over a link.
 *
 * @param {ObjectHost} host
 * @param {string} url
 * @param {number | null} [childrenAfter] number of the last child before the page; null: no page
 */
async function readObject({ port }, url, childrenAfter = null) {
  const body = childrenAfter === null ? {} : { childrenAfter };
  const answer = await port.ask("read", url, body);
  return codeOf(answer) === CODES.UNAUTHENTICATED ? port.ask("read", url, { ...body, p2p: false }) : answer;
}

/**
 * One child of a data object; only the hyperty that created it changes it, and the reporter of the
 * object may delete it.
 */
export class Child {
  #children;

  /**
   * @param {string} id
   * @param {Children} children
   */
  constructor(id, children) {
    this.id = id;
    this.#children = children;
  }

  get creator() {
    return named(this.id)?.creator ?? "";
  }

  /** The value of the child, which cannot be changed in place; null: deleted. @type {Json} */
  get value() {
    return this.#children.kept(this.id)?.value ?? null;
  }

  /**
   * Replace the value of the child, and notify all observers.
   *
   * @param {Json} value
   */
  update(value) {
    return this.#children.change("update", this.id, value);
  }

  /** Delete it; if the reporter does, its creator cannot create it again. */
  delete() {
    return this.#children.change("delete", this.id, null);
  }
}

/**
 * All children of a data object, the oldest first. If the object has a window, the oldest leave.
 * @extends {Emitter<{change: {id: string, old: Json, new: Json, missed: number}}>}
 */
export class Children extends Emitter {
  #host;
  #url;
  #copy;
  #deleteAny;
  #isBegun = false;
  /** Number of missed children that an event has counted. */
  #missed = 0;
  /** Resolves when the last queued operation of the hyperty has ended. @type {Promise<unknown>} */
  #turn = Promise.resolve();
  /** @type {Map<string, Json>} */
  #seen = new Map();

  /**
   * @param {ObjectHost} host
   * @param {string} url
   * @param {((id: string) => Promise<unknown>) | null} [deleteAny] deletes a child of any creator; null: the
   *   hyperty does not report the object
   */
  constructor(host, url, deleteAny = null) {
    super();
    this.#host = host;
    this.#url = url;
    this.#deleteAny = deleteAny;
    /** @type {import("./sync/children.js").ChildrenPort} */
    const port = {
      shown: (id, value) => this.#changed(id, value),
      gone: (id) => this.#changed(id, null),
      read: (number) => void this.#read(number),
      sayAgain: (act, id) => this.#sayAgain(act, id),
    };
    this.#copy = new Host(host.clock, port, (asked) => new ChildrenCopyCore(host.url, asked));
  }

  get #children() {
    return this.#copy.core.children;
  }

  get size() {
    return this.#children.kept.size;
  }

  /** Number of children that left the window before this copy could read them. */
  get missed() {
    return this.#copy.core.missed;
  }

  /** @param {string} id */
  kept(id) {
    return this.#children.kept.get(id);
  }

  /**
   * @param {string} id
   * @returns {Child | undefined}
   */
  get(id) {
    return this.kept(id) && new Child(id, this);
  }

  [Symbol.iterator]() {
    return [...this.#children.kept.keys()].map((id) => new Child(id, this)).values();
  }

  /**
   * Create a child, and wait until the reporter's runtime has it.
   *
   * Each attempt is about the same child: an earlier one may have created it. So it may appear among
   * the children after a refusal with 408 or 503.
   *
   * @param {Json} value
   * @returns {Promise<Child>}
   */
  create(value) {
    return this.#inTurn(async () => {
      const number = this.#host.nextId(this.#host.url);
      const id = `${this.#host.url}#${number}`;
      let op = this.#op("create", id, number, value);
      let answer = await this.#host.port.request(this.#message(op));
      for (let tries = 1; codeOf(answer) === CODES.UNAVAILABLE && tries < CHILD_TRIES; tries += 1) {
        // The reporter's store is not writable now, or the route to the reporter has changed.
        await sleep(this.#host.clock, BUSY_PAUSE);
        op = { ...op, version: this.#host.nextId(this.#host.url) };
        answer = await this.#host.port.request(this.#message(op));
      }
      if (UNDECIDED.includes(codeOf(answer))) this.#copy.run((core, now) => core.doubt(now));
      granted(answer);
      this.#take(op);
      return new Child(id, this);
    });
  }

  /**
   * @param {"update" | "delete"} act
   * @param {string} id
   * @param {Json} value
   */
  async change(act, id, value) {
    if (act === "delete" && this.#deleteAny && named(id)?.creator !== this.#host.url) {
      if (!this.kept(id)) throw new Refusal(CODES.NOT_FOUND, "the child is deleted");
      await this.#deleteAny(id);
      return this.#copy.run((core) => core.end(id));
    }
    return this.#inTurn(async () => {
      if (named(id)?.creator !== this.#host.url) {
        throw new Refusal(CODES.FORBIDDEN, "only its creator changes a child");
      }
      if (!this.kept(id)) throw new Refusal(CODES.NOT_FOUND, "the child is deleted");
      this.#say(act, id, value);
    });
  }

  /**
   * @template T
   * @param {() => Promise<T>} act
   * @returns {Promise<T>}
   */
  #inTurn(act) {
    const done = this.#turn.then(act);
    this.#turn = done.catch(() => {});
    return done;
  }

  /**
   * @param {"create" | "update" | "delete"} act
   * @param {string} id
   * @param {Json} value
   */
  #say(act, id, value) {
    const op = this.#op(act, id, this.#host.nextId(this.#host.url), value);
    this.#take(op);
    this.#host.port.post(this.#message(op));
  }

  /**
   * @param {"create" | "update" | "delete"} act
   * @param {string} name
   * @param {number} version
   * @param {Json} value
   */
  #op(act, name, version, value) {
    if (this.#copy.isOver) throw new Refusal(CODES.GONE, "the object is gone, or left");
    if (act !== "delete" && (value ?? null) === null) throw new Refusal(CODES.MALFORMED, "a child has a value");
    const copy = checked(() => checkedValue(value));
    const { creator, number } = /** @type {{creator: string, number: number}} */ (named(name));
    const op = { act, name, creator, number, version, value: copy, removes: null, base: 0 };
    const refusal = this.#children.refusal(op);
    if (refusal) throw new Refusal(refusal.code, refusal.why);
    return op;
  }

  /**
   * @param {import("./sync/children.js").ChildOp} op
   * @returns {Message}
   */
  #message({ act, name, version, value }) {
    const body = { resource: name, ...(act === "delete" ? {} : { value }) };
    return { id: version, type: act, from: this.#host.url, to: childrenOf(this.#url)[0], body };
  }

  /**
   * @param {import("./sync/children.js").ChildOp} op
   * @param {boolean} [isReported]
   */
  #take(op, isReported) {
    this.#copy.run((core, now) => core.take(op, now, isReported));
  }

  /**
   * Process a message to the address of the children.
   *
   * @param {Message} message
   * @param {boolean} [isReported] whether it comes from the reporter's end, which keeps it already
   */
  heard(message, isReported = false) {
    const { from, body } = message;
    // What the hyperty has said itself comes back to it.
    if (from === this.#host.url) return;
    const { count, digest } = body;
    if (from === this.#url && "ended" in body) {
      const report = endedIn(body);
      if (report) this.#copy.run((core, now) => core.takeEnded(report, now));
      return;
    }
    const isReport = from === this.#url && "resource" in body;
    const op = isReport ? opOf(body) : opIn(message);
    if (op) this.#take(op, isReport || isReported);
    else if (from === this.#url && typeof count === "number" && typeof digest === "string") {
      this.#copy.run((core, now) => core.hearSign({ count, digest }, now));
    }
  }

  /**
   * Set all children from the whole object.
   *
   * @param {Json | undefined} shown
   * @param {import("./sync/children.js").ChildWindow | null} window
   */
  begin(shown, window) {
    this.#children.window = window;
    const isBegun = this.#isBegun;
    this.#isBegun = true;
    this.#copy.run((core, now) => (isBegun ? core.doubt(now) : core.become(isObject(shown) ? shown : null, now)));
  }

  /** Read the children of an object with a window again: the oldest may be gone soon. */
  check() {
    if (this.#children.window) this.#copy.run((core, now) => core.doubt(now));
  }

  /**
   * @param {string} id
   * @param {Json} value
   */
  #changed(id, value) {
    const old = this.#seen.get(id) ?? null;
    if (value === null) this.#seen.delete(id);
    else this.#seen.set(id, value);
    const missed = this.missed - this.#missed;
    this.#missed = this.missed;
    this.emit("change", { id, old, new: value, missed });
  }

  /**
   * Read the whole object, or all pages of its children.
   *
   * @param {number} number
   */
  async #read(number) {
    /** @type {JsonObject} */
    const entries = {};
    for (let after = this.#children.window ? 0 : null; ; ) {
      const answer = await readObject(this.#host, this.#url, after);
      const { value } = answer.body;
      if (!isSuccess(answer) || !isObject(value)) return this.#copy.run((core, now) => core.readFailed(number, now));
      const shown = isObject(value.childrenObjects) ? value.childrenObjects : null;
      const page = shown?.[RESOURCES];
      const next = wholeIn(shown?.window, "next");
      const isPage = after !== null && isObject(page);
      if (isPage) Object.assign(entries, page);
      const isLast = !isPage || next <= (after ?? 0) || Object.keys(entries).length > WINDOW_CHILDREN;
      const whole = isPage ? { ...shown, [RESOURCES]: entries } : shown;
      if (isLast) return this.#copy.run((core, now) => core.become(whole, now));
      after = next;
    }
  }

  /**
   * @param {import("./sync/children.js").Act} act
   * @param {string} id
   */
  #sayAgain(act, id) {
    void this.#inTurn(async () => {
      const kept = this.kept(id);
      if (kept || act === "delete") this.#say(act, id, kept ? kept.value : null);
    }).catch(() => {});
  }

  end() {
    this.#copy.stop();
  }
}

/**
 * A data object of this hyperty.
 * @extends {Emitter<{observer: {observer: string, isThere: boolean}}>}
 */
export class ReportedObject extends Emitter {
  #objects;
  #host;
  #schema;
  #name;
  /** @type {Set<string>} */
  #observers = new Set();
  #listed = 0;
  /** @type {Promise<void> | null} */
  #closing = null;

  /**
   * @param {Objects} objects
   * @param {ObjectHost} host
   * @param {string} url
   * @param {{schema: string, name?: string, data: JsonObject,
   *   window: import("./sync/children.js").ChildWindow | null}} created
   */
  constructor(objects, host, url, { schema, name, data, window }) {
    super();
    this.#objects = objects;
    this.#host = host;
    this.#schema = schema;
    this.#name = name;
    this.url = url;
    /** The published value, which cannot be changed in place. */
    this.value = data;
    this.version = 1;
    this.children = new Children(host, url, (child) => this.#ask("delete", { resource: url, child }));
    this.children.begin({}, window);
  }

  /** Addresses of the observers. */
  get observers() {
    return [...this.#observers];
  }

  /**
   * Set an attribute, and return the version with it.
   *
   * @param {string} path dotted; a number is an element of a list; missing objects are made
   * @param {Json} value null removes it
   */
  set(path, value) {
    return this.#change({ attribute: path, value: value ?? undefined });
  }

  /** @param {string} path */
  remove(path) {
    return this.#change({ attribute: path });
  }

  /**
   * Append elements to a list, which is made if it does not exist.
   *
   * @param {string} path
   * @param {Json[]} value
   */
  add(path, ...value) {
    return this.#change({ attribute: path, value, attributeType: "array", operation: "add" });
  }

  /**
   * Remove all elements of a list that equal one of these.
   *
   * @param {string} path
   * @param {Json[]} value
   */
  discard(path, ...value) {
    return this.#change({ attribute: path, value, attributeType: "array", operation: "remove" });
  }

  /**
   * Replace its whole value.
   *
   * @param {JsonObject} value
   */
  replace(value) {
    return this.#change({ value });
  }

  /**
   * @param {Change} change
   * @returns {Promise<number>}
   */
  async #change(change) {
    const { attribute } = change;
    const brought = checked(() => {
      const copy = { ...change, ...(change.value === undefined ? {} : { value: checkedValue(change.value) }) };
      checkPath(attribute);
      checkSize(attribute);
      if (attribute?.split(".").includes("")) throw new BadMessageError("a path has no empty parts");
      const isMade = change.value !== undefined && change.operation !== "remove";
      if (isMade && attribute !== undefined && !canBeSet(this.value, attribute)) throw new BadMessageError(`nothing can be set at ${attribute}`);
      checkedValue(changed(this.value, copy));
      return copy;
    });
    const answer = await this.#ask("update", { resource: this.url, ...brought });
    this.value = changed(this.value, brought);
    this.version = numberOf(answer.body.version);
    return this.version;
  }

  /**
   * @param {MessageType} type
   * @param {JsonObject} body
   */
  async #ask(type, body) {
    return granted(await this.#objects.askManager(type, body));
  }

  /**
   * Allow a hyperty to observe it, without a question.
   *
   * @param {string} observer
   */
  async allow(observer) {
    await this.#ask("create", { resource: this.url, observer });
  }

  /**
   * Remove an observer, which loses its permission.
   *
   * @param {string} observer
   */
  async expel(observer) {
    await this.#ask("unsubscribe", { resource: this.url, observer });
    void this.#host.port.ask("unsubscribe", observer, { resource: this.url });
  }

  /**
   * Invite a hyperty, and wait for its answer; it may observe after any answer.
   *
   * @param {string} observer
   */
  async invite(observer) {
    const value = this.#name === undefined ? {} : { name: this.#name };
    await this.#ask("create", { resource: this.url, schema: this.#schema, authorise: [observer], value });
  }

  /**
   * Process an event about observers that joined or left.
   *
   * @param {JsonObject} body
   */
  listed({ value, operation, version }) {
    if (version !== this.#listed + 1) return void this.readObservers();
    this.#listed = version;
    for (const observer of Array.isArray(value) ? value : []) this.#observes(textOf(observer), operation === "add");
  }

  /** Read the list of observers. */
  async readObservers() {
    const { value } = (await this.#host.port.ask("read", `${this.url}/observers`, {})).body;
    if (!isObject(value) || !Array.isArray(value.observers) || numberOf(value.version) < this.#listed) return;
    this.#listed = numberOf(value.version);
    const named = new Set(value.observers.map(textOf));
    for (const observer of this.observers) if (!named.has(observer)) this.#observes(observer, false);
    for (const observer of named) if (!this.#observers.has(observer)) this.#observes(observer, true);
  }

  /**
   * @param {string} observer
   * @param {boolean} isThere
   */
  #observes(observer, isThere) {
    if (this.#observers.has(observer) === isThere) return;
    if (isThere) this.#observers.add(observer);
    else this.#observers.delete(observer);
    this.emit("observer", { observer, isThere });
  }

  /** Delete it; all observers are notified. Idempotent. */
  close() {
    this.#closing ??= (async () => {
      this.children.end();
      this.#objects.forget(this.url);
      await this.#objects.askManager("delete", { resource: this.url });
    })();
    return this.#closing;
  }
}

/**
 * A copy of a data object, which follows each change.
 * @extends {Emitter<{change: import("./value.js").ObjectChange, end: Refusal}>}
 */
export class ObservedObject extends Emitter {
  #objects;
  #host;
  #copy;
  #p2p;
  /** The value that was shown last. @type {JsonObject} */
  #seen;
  /** @type {string | null} */
  #reporter = null;
  /** @type {Refusal | null} */
  #end = null;
  /** Is called with the first value, or without one at the end. @type {(ready: unknown) => void} */
  #begun = () => {};
  /** @type {Promise<void> | null} */
  #closing = null;

  /**
   * @param {Objects} objects
   * @param {ObjectHost} host
   * @param {string} url
   * @param {boolean | undefined} p2p
   */
  constructor(objects, host, url, p2p) {
    super();
    this.#objects = objects;
    this.#host = host;
    this.#p2p = p2p;
    this.url = url;
    this.children = new Children(host, url);
    /** @type {import("./sync/copy.js").CopyPort} */
    const port = {
      step: (step) => host.trace.step(host.url, step),
      show: (...shown) => this.#changed(...shown),
      read: (number) => void this.#read(number),
      end: (why) => this.#ended(why),
    };
    this.#copy = new Host(host.clock, port, (asked) => new ObserverCore(url, host.url, asked));
    this.#seen = this.value;
  }

  /** The newest value, which cannot be changed in place. */
  get value() {
    return this.#copy.core.data;
  }

  get version() {
    return this.#copy.core.version;
  }

  /** Whether changes were lost, and the object is being read. */
  get isStale() {
    return this.#copy.core.state === "stale";
  }

  /** The reason why no changes come any more; null: changes come. */
  get gone() {
    return this.#end;
  }

  /** Subscribe, and wait for the value. */
  async begin() {
    const ready = new Promise((resolve) => (this.#begun = resolve));
    this.#copy.run((core, now) => core.begin(now));
    void this.#subscribe();
    await ready;
    if (!this.version && this.#end) throw this.#end;
  }

  async #subscribe() {
    const answer = await this.#objects.askManager("subscribe", { resource: this.url, p2p: this.#p2p });
    if (isSuccess(answer)) this.#shown(answer.body.value, true);
    else this.giveUp(new Refusal(codeOf(answer), reasonIn(answer)));
  }

  /**
   * Process a message about the object.
   *
   * @param {Message} message
   */
  heard(message) {
    const { type, to, from, body } = message;
    if (type === "delete") return this.#copy.run((core, now) => core.delete(now));
    if (type === "unsubscribe") {
      void this.#objects.askManager("unsubscribe", { resource: this.url });
      return this.giveUp(new Refusal(CODES.FORBIDDEN, "its reporter has expelled this hyperty"));
    }
    if (to === this.#host.url) return this.#shown(body.value);
    if (from !== this.url) return;
    try {
      const change = changeIn(body);
      if (change.source !== undefined) this.#reporter = change.source;
      this.#copy.run((core, now) => core.change(change, now));
    } catch (error) {
      if (!(error instanceof BadMessageError)) throw error;
      const why = `its reporter sent a change that is none: ${error.message}`;
      this.#copy.run((core, now) => core.doubt(why, now));
    }
  }

  /** @param {string} from */
  mayExpel(from) {
    return from === this.#reporter || from === `${this.#host.runtime}/sm`;
  }

  /**
   * @param {Json | undefined} value
   * @param {boolean} [isFirst]
   */
  #shown(value, isFirst = false) {
    const { version, data, reporter, childrenObjects, childrenWindow } = isObject(value) ? value : {};
    try {
      if (!Number.isInteger(version) || numberOf(version) < 1 || !isObject(data)) throw new BadMessageError("");
      const window = windowIn(childrenWindow);
      if (isFirst) this.children.begin(childrenObjects, window);
      else this.children.check();
    } catch (error) {
      if (!(error instanceof BadMessageError)) throw error;
      return this.giveUp(new Refusal(CODES.GONE, "its reporter sent an object that is none"));
    }
    if (typeof reporter === "string") this.#reporter = reporter;
    this.#copy.run((core, now) => core.become({ version: numberOf(version), data }, now));
  }

  /**
   * Stop observing the object, for a reason that the hyperty gets as the event `end`.
   *
   * @param {Refusal} refusal
   */
  giveUp(refusal) {
    this.#end ??= refusal;
    this.#copy.run((core, now) => core.giveUp(refusal.reason, now));
  }

  /**
   * @param {number} version
   * @param {JsonObject} data
   * @param {import("./value.js").Change | null} change
   */
  #changed(version, data, change) {
    const { trace, url: by } = this.#host;
    const digest = trace.keeps ? valueDigest(data) : undefined;
    trace.record(by, { k: "obj", op: "apply", key: this.url, version, by, digest });
    const old = this.#seen;
    this.#seen = data;
    this.#begun(null);
    this.emit("change", described(old, data, change ?? { version }));
  }

  /** @param {string} why */
  #ended(why) {
    this.#end ??= new Refusal(CODES.GONE, why);
    this.children.end();
    this.#objects.forget(this.url);
    this.#begun(null);
    this.emit("end", this.#end);
  }

  /** @param {number} number */
  async #read(number) {
    let answer = await readObject(this.#host, this.url);
    if (codeOf(answer) === CODES.UNAUTHENTICATED) {
      // Its subscription may be over, and no message could say so.
      answer = await this.#objects.askManager("subscribe", { resource: this.url, p2p: this.#p2p, resume: true });
    }
    const why = reasonIn(answer);
    const code = codeOf(answer);
    const isPassing = isSuccess(answer) || PASSING.some((one) => one === code);
    if (isSuccess(answer) && isObject(answer.body.value)) this.#shown(answer.body.value);
    else if (isPassing) this.#copy.run((core, now) => core.readFailed(number, why, now));
    else if (code === CODES.NOT_FOUND) this.#copy.run((core, now) => core.notFound(number, why, now));
    else this.giveUp(new Refusal(code, why));
  }

  /**
   * Wait until a condition holds for the value, and return the value.
   *
   * @param {(value: JsonObject) => boolean} holds
   * @returns {Promise<JsonObject>}
   */
  waitFor(holds) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!holds(this.value)) return this.#end ? stop(() => reject(this.#end)) : undefined;
        stop(() => resolve(this.value));
      };
      const ends = [this.on("change", look), this.on("end", look)];
      /** @param {() => void} settle */
      const stop = (settle) => {
        for (const end of ends) end();
        settle();
      };
      look();
    });
  }

  /** Stop observing it. Idempotent. */
  close() {
    this.#closing ??= (async () => {
      if (this.#end) return;
      await this.#objects.askManager("unsubscribe", { resource: this.url });
      this.giveUp(new Refusal(CODES.GONE, LEAVES));
    })();
    return this.#closing;
  }
}

/** The data objects of one hyperty. */
export class Objects {
  #host;
  /** @type {Map<string, ReportedObject>} */
  #reported = new Map();
  /** @type {Map<string, ObservedObject>} */
  #observed = new Map();
  #creating = 0;

  /** @param {ObjectHost} host */
  constructor(host) {
    this.#host = host;
  }

  /**
   * @param {MessageType} type
   * @param {JsonObject} body
   */
  askManager(type, body) {
    return this.#host.port.ask(type, `${this.#host.runtime}/sm`, body);
  }

  /**
   * @param {string} schema
   * @param {JsonObject} value
   * @param {{name?: string, resources?: string[], allow?: string[], public?: boolean,
   *   observers?: string[], children?: {last?: number, bytes?: number, seconds?: number}}} options
   */
  async report(schema, value, { name, resources, allow = [], public: isPublic, observers = [], children }) {
    const { url: reporter, runtime } = this.#host;
    const address = schemaNamed(schema, domainOf(reporter));
    const data = checked(() => checkedValue(value));
    if (!isObject(data)) throw new Refusal(CODES.MALFORMED, "the value of an object is a JSON object");
    const window = checked(() => windowIn(children));
    const about = byteLength(checked(() => jsonOf([name ?? null, ...(resources ?? [])])));
    if (about > ABOUT_BYTES) {
      throw new Refusal(CODES.TOO_LARGE, `name and resources have ${about} bytes, and may have ${ABOUT_BYTES}`);
    }
    this.#creating += 1;
    try {
      const answer = granted(await this.askManager("create", {
        value: { reporter, data, runtime, name, schema: address, resources, childrenWindow: window ?? undefined },
        schema: address,
        allow: allow.length ? allow : undefined,
        publicObservation: isPublic || undefined,
      }));
      const url = textOf(answer.body.resource);
      const object = new ReportedObject(this, this.#host, url, { schema: address, name, data, window });
      this.#reported.set(url, object);
      await object.readObservers();
      for (const observer of observers) void object.invite(observer).catch(() => {});
      return object;
    } finally {
      this.#creating -= 1;
    }
  }

  /**
   * @param {string} url
   * @param {{p2p?: boolean}} options
   */
  async observe(url, { p2p }) {
    if (this.#observed.has(url)) {
      throw new Refusal(CODES.CONFLICT, "this hyperty observes it already: share it");
    }
    const object = new ObservedObject(this, this.#host, url, p2p);
    this.#observed.set(url, object);
    await object.begin();
    return object;
  }

  /** @param {string} url */
  forget(url) {
    this.#reported.delete(url);
    this.#observed.delete(url);
  }

  /**
   * Process a message for the hyperty if it is about a data object.
   *
   * @param {Message} message
   * @param {import("./hyperty.js").Code} code
   * @param {import("./hyperty.js").Hyperty} hyperty
   * @returns {boolean} false: it is about none
   */
  take(message, code, hyperty) {
    const { to, from, type, body } = message;
    const { url, port, runtime } = this.#host;
    if (to !== url) return this.#heard(message);
    const object = this.#observed.get(textOf(body.resource));
    const isShown = type === "update" && from === `${runtime}/sm`;
    const isExpelled = type === "unsubscribe" && object !== undefined;
    if (isShown || isExpelled) {
      if (isExpelled && !object.mayExpel(from)) {
        port.post(refuse(message, CODES.FORBIDDEN, "only its reporter expels an observer"));
      } else {
        object?.heard(message);
        port.post(replyTo(message, CODES.OK));
      }
      return true;
    }
    // While one is made, its address is not known: it is none of a hyperty, and asks here alone.
    const isNew = this.#creating > 0 && !from.startsWith("hyperty:") && !viaOf(message).length;
    if (type === "forward" && (isNew || this.#reported.has(from)) && isObject(body.message)) {
      const observer = textOf(body.message.from);
      hyperty.decide(message, async () => {
        if (observer === url) return;
        if (!code.subscribe) throw new Refusal(CODES.FORBIDDEN, `${observer} is not invited to ${from}`);
        await code.subscribe({ object: from, observer, identity: message.identity }, hyperty);
      });
      return true;
    }
    if (type === "create" && from.endsWith("/subscription") && code.invited) {
      const object = from.slice(0, -"/subscription".length);
      const { source, schema, value } = body;
      hyperty.decide(message, async () => {
        await code.invited?.({ object, reporter: textOf(source), schema: textOf(schema), value: value ?? null }, hyperty);
      });
      return true;
    }
    return false;
  }

  /** @param {Message} message */
  #heard(message) {
    const { to, from, type, body } = message;
    const match = /^(.*)\/(changes|observers|children\/[^/]+)$/s.exec(to);
    const [, url, part] = match ?? [];
    if (part === "observers") {
      if (type === "update" && from === url) this.#reported.get(url)?.listed(body);
    } else if (part === "changes") {
      if (isBelow(from, url)) this.#observed.get(url)?.heard(message);
    } else if (part !== undefined) {
      const reported = this.#reported.get(url);
      if (reported) reported.children.heard(message, true);
      else this.#observed.get(url)?.children.heard(message);
    } else return false;
    return true;
  }

  /** Close all objects without sending messages, as the hyperty has left. */
  end() {
    for (const object of this.#reported.values()) object.children.end();
    for (const object of [...this.#observed.values()]) object.giveUp(new Refusal(CODES.GONE, LEAVES));
  }
}

/**
 * @param {string} name
 * @param {string} domain
 */
function schemaNamed(name, domain) {
  if (name.includes("://")) return name;
  const last = SCHEMAS[name] ?? name.charAt(0).toUpperCase() + name.slice(1).toLowerCase();
  return `hyperty-catalogue://catalogue.${domain}/.well-known/dataschema/${last}`;
}
