/**
 * The observer's end of a data object: a copy that follows version by version.
 * `fsm/sync/copy.py` explains it.
 */

import { EARLY_CHANGES, GONE_READS, QUIET, READ_PAUSE, REPEAT_LAST, VALUE_BYTES } from "../constants.js";
import { Entity } from "../machine.js";
import { changed, freeze, isApplicable, jsonSize } from "../value.js";

/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../value.js").Change} Change */
/** @typedef {Change & {version: number}} Published */
/** @typedef {{version: number, data: JsonObject}} Snapshot */

/**
 * @typedef {{on: "observe-begun"} | {on: "snapshot-read", snapshot: Snapshot} |
 *   {on: "changed", change: Published} | {on: "unreadable", why?: string} | {on: "read-failed", read: number, why?: string} |
 *   {on: "not-found", read: number, why?: string} | {on: "given-up", why?: string} |
 *   {on: "withdrawn-by-reporter"} | {on: "copy-time-over"}} Input
 */

/**
 * `applied` without `change`: the whole object came.
 * @typedef {import("../machine.js").Step |
 *   {do: "applied", version: number, data: JsonObject, change: Published | null} |
 *   {do: "read-needed", read: number} | {do: "observer-gone", why: string}} Effect
 */

/** Bytes of JSON around a key and what it leads to. */
const OBJECT_BYTES = 6;

/** An observer's copy of one data object; inputs after its end are ignored. */
export class ObserverCore {
  #entity;
  #quiet;
  #most = 0;
  /** @type {Map<number, Published>} */
  #early = new Map();
  #reads = 0;
  #notFound = 0;
  #until = Infinity;
  #readAt = Infinity;

  /**
   * @param {string} url
   * @param {string} observer
   * @param {number} [quiet] seconds without a message after which a live copy reads
   */
  constructor(url, observer, quiet = QUIET) {
    this.#entity = new Entity("observer_copy", `${url}|${observer}`);
    this.#quiet = quiet;
    this.version = 0;
    this.data = freeze(/** @type {JsonObject} */ ({}));
  }

  get state() {
    return this.#entity.state;
  }

  /** When it is to be fed `copy-time-over`. */
  get deadline() {
    return Math.min(this.#until, this.#readAt);
  }

  /**
   * @param {Input} input
   * @param {number} now
   * @returns {Effect[]}
   */
  feed(input, now) {
    if (this.state === "deleted") return [];
    switch (input.on) {
      case "observe-begun":
        return [this.#step("observe", now)];
      case "snapshot-read":
        return this.#sync(input.snapshot, now);
      case "changed":
        return this.#take(input.change, now);
      case "unreadable":
        return this.#doubt(input.why ?? "", now);
      case "read-failed":
        return this.#fail(input, now);
      case "not-found":
        return this.#miss(input, now);
      case "given-up":
        return this.#end("given-up", now, input.why ?? "");
      case "withdrawn-by-reporter":
        return this.#end("deleted", now, "deleted by its reporter");
      case "copy-time-over":
        return this.#timeOver(now);
    }
  }

  /**
   * Enter a state, and begin its wait.
   *
   * @param {string} trigger
   * @param {number} now
   * @param {string} [why]
   */
  #step(trigger, now, why = "") {
    const step = this.#entity.step(trigger, why, trigger === "changed" ? ["gap"] : []);
    this.#until = now + this.#entity.patience;
    this.#readAt = Infinity;
    return step;
  }

  /**
   * @param {Snapshot} snapshot
   * @param {number} now
   */
  #sync({ version, data }, now) {
    // Repeated reads that do not close the gap are spaced.
    const pause = this.state === "stale" ? READ_PAUSE : 0;
    /** @type {Effect[]} */
    const effects = [this.#step("snapshot", now)];
    this.#hear(now);
    if (version > this.version) {
      this.#most = jsonSize(data);
      effects.push(this.#become(version, data, null));
    }
    const early = [...this.#early.values()].sort((one, other) => one.version - other.version);
    this.#early.clear();
    for (const change of early) {
      if (change.version > this.version && this.state !== "deleted") {
        effects.push(...this.#take(change, now, pause));
      }
    }
    return effects;
  }

  /**
   * @param {number} version
   * @param {JsonObject} data
   * @param {Published | null} change
   * @returns {Effect}
   */
  #become(version, data, change) {
    this.version = version;
    this.data = freeze(data);
    return { do: "applied", version, data: this.data, change };
  }

  /**
   * @param {Published} change
   * @param {number} now
   * @param {number} [pause]
   * @returns {Effect[]}
   */
  #take(change, now, pause = 0) {
    const { version } = change;
    if (this.state !== "live") {
      this.#keep(change);
      return [this.#entity.step("changed")];
    }
    const gap = this.#gap(change);
    if (gap) {
      this.#keep(change);
      const step = this.#step("changed", now, gap);
      this.#readAt = now + pause;
      return pause ? [step] : [step, this.#read()];
    }
    const step = this.#entity.step("changed");
    this.#hear(now);
    return version <= this.version ? [step] : [step, ...this.#apply(change, now)];
  }

  /**
   * Return why a change does not lead on from the value; empty: it does, or is late.
   *
   * @param {Published} change
   */
  #gap(change) {
    const { version } = change;
    if (version > this.version + 1) return `${version} came after ${this.version}`;
    const isNext = version === this.version + 1;
    return isNext && !isApplicable(this.data, change) ? `${version} does not fit ${this.version}` : "";
  }

  /**
   * Read the object after a pause: something that is no change was published.
   *
   * @param {string} why
   * @param {number} now
   * @returns {Effect[]}
   */
  #doubt(why, now) {
    if (this.state !== "live") return [];
    const step = this.#step("changed", now, why);
    this.#readAt = now + READ_PAUSE;
    return [step];
  }

  /**
   * @param {Published} change
   * @param {number} now
   */
  #apply(change, now) {
    const data = changed(this.data, change);
    const { attribute, value = null, version } = change;
    const segments = attribute === undefined ? 1 : attribute.split(".").length;
    this.#most += jsonSize([attribute ?? null, value]) + OBJECT_BYTES * segments;
    if (this.#most > VALUE_BYTES) this.#most = jsonSize(data);
    if (this.#most > VALUE_BYTES) {
      return this.#end("given-up", now, `its value has more than ${VALUE_BYTES} bytes`);
    }
    return [this.#become(version, data, change)];
  }

  /**
   * Keep a change that came early; of too many the oldest go, and the newest shows the gap.
   *
   * @param {Published} change
   */
  #keep(change) {
    if (change.version > this.version) this.#early.set(change.version, change);
    if (this.#early.size > EARLY_CHANGES) this.#early.delete(Math.min(...this.#early.keys()));
  }

  /** @param {number} now */
  #hear(now) {
    this.#readAt = now + this.#quiet;
    this.#notFound = 0;
  }

  /** @returns {Effect} */
  #read() {
    this.#reads += 1;
    this.#readAt = Infinity;
    return { do: "read-needed", read: this.#reads };
  }

  /**
   * @param {{read: number, why?: string}} failed
   * @param {number} now
   * @returns {Effect[]}
   */
  #fail({ read, why }, now) {
    const isReading = this.state === "stale" && this.#readAt === Infinity;
    if (!isReading || read !== this.#reads) return [];
    const step = this.#step("read-failed", now, why);
    this.#readAt = now + READ_PAUSE;
    return [step];
  }

  /**
   * Look for the object again, at pauses that double, before it counts as gone.
   *
   * @param {{read: number, why?: string}} failed
   * @param {number} now
   */
  #miss(failed, now) {
    if (failed.read !== this.#reads) return [];
    this.#notFound += 1;
    if (this.#notFound >= GONE_READS) return this.#end("given-up", now, failed.why ?? "");
    const effects = this.#fail(failed, now);
    this.#readAt = now + READ_PAUSE * 2 ** (this.#notFound - 1);
    return effects;
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  #timeOver(now) {
    if (now < this.deadline) return [];
    if (this.state === "syncing") return this.#end("given-up", now, "no snapshot came in time");
    if (this.state === "live") {
      const read = this.#read();
      this.#readAt = now + Math.min(REPEAT_LAST, this.#quiet);
      return [read];
    }
    if (now < this.#until) return [this.#read()];
    return [this.#step("read-failed", now, "the read was not answered"), this.#read()];
  }

  /**
   * @param {"given-up" | "deleted"} trigger
   * @param {number} now
   * @param {string} why
   * @returns {Effect[]}
   */
  #end(trigger, now, why) {
    this.#early.clear();
    const step = this.#step(trigger, now, trigger === "given-up" ? why : "");
    return [step, { do: "observer-gone", why }];
  }
}
