/**
 * An observer's copy of a data object, which applies changes version by version; a state machine
 * without I/O, see `fsm/sync/copy.py`.
 */

import { EARLY_CHANGES, GONE_READS, QUIET, READ_PAUSE, REPEAT_LAST, VALUE_BYTES } from "../constants.js";
import { Entity } from "../machine.js";
import { changed, freeze, isApplicable, jsonSize } from "../value.js";

/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../value.js").Change} Change */
/** @typedef {Change & {version: number}} Published */
/** @typedef {{version: number, data: JsonObject}} Snapshot */

/**
 * The commands of a copy, which its host executes. `change` is null if the whole object was read.
 * @typedef {object} CopyPort
 * @property {(step: import("../machine.js").Step) => void} step
 * @property {(version: number, data: JsonObject, change: Published | null) => void} show
 * @property {(number: number) => void} read reads the object
 * @property {(why: string) => void} end no change comes any more
 */

/** Bytes of JSON around a key and what it leads to. */
const OBJECT_BYTES = 6;

/** An observer's copy of one data object; calls after its end are ignored. */
export class ObserverCore {
  #entity;
  #port;
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
   * @param {CopyPort} port
   * @param {number} [quiet] seconds without a message after which a live copy reads
   */
  constructor(url, observer, port, quiet = QUIET) {
    this.#entity = new Entity("observer_copy", `${url}|${observer}`);
    this.#port = port;
    this.#quiet = quiet;
    this.version = 0;
    this.data = freeze(/** @type {JsonObject} */ ({}));
  }

  get state() {
    return this.#entity.state;
  }

  /** When `timeOver` is due. */
  get deadline() {
    return this.state === "deleted" ? Infinity : Math.min(this.#until, this.#readAt);
  }

  /** @param {number} now */
  begin(now) {
    this.#step("observe", now);
  }

  /**
   * Replace the copy by the whole object that was read.
   *
   * @param {Snapshot} snapshot
   * @param {number} now
   */
  become({ version, data }, now) {
    if (this.state === "deleted") return;
    // Repeated reads that do not close the gap are spaced.
    const pause = this.state === "stale" ? READ_PAUSE : 0;
    this.#step("snapshot", now);
    this.#hear(now);
    if (version > this.version) {
      this.#most = jsonSize(data);
      this.#show(version, data, null);
    }
    const early = [...this.#early.values()].sort((one, other) => one.version - other.version);
    this.#early.clear();
    for (const change of early) if (change.version > this.version) this.change(change, now, pause);
  }

  /**
   * @param {Published} change
   * @param {number} now
   * @param {number} [pause] before a gap is read
   */
  change(change, now, pause = 0) {
    if (this.state === "deleted") return;
    const gap = this.state === "live" ? this.#gap(change) : "";
    if (this.state !== "live" || gap) this.#keep(change);
    if (gap) {
      this.#step("changed", now, gap);
      this.#readAt = now + pause;
      if (!pause) this.#read();
      return;
    }
    this.#port.step(this.#entity.step("changed"));
    if (this.state !== "live") return;
    this.#hear(now);
    if (change.version > this.version) this.#apply(change, now);
  }

  /**
   * Read the object after a pause, because an invalid change was received.
   *
   * @param {string} why
   * @param {number} now
   */
  doubt(why, now) {
    if (this.state !== "live") return;
    this.#step("changed", now, why);
    this.#readAt = now + READ_PAUSE;
  }

  /**
   * @param {number} read number of the read
   * @param {string} why
   * @param {number} now
   */
  readFailed(read, why, now) {
    if (this.state !== "stale" || this.#readAt !== Infinity || read !== this.#reads) return;
    this.#step("read-failed", now, why);
    this.#readAt = now + READ_PAUSE;
  }

  /**
   * Read the object again, at pauses that double, before it counts as deleted.
   *
   * @param {number} read number of the read
   * @param {string} why
   * @param {number} now
   */
  notFound(read, why, now) {
    if (this.state === "deleted" || read !== this.#reads) return;
    this.#notFound += 1;
    if (this.#notFound >= GONE_READS) return this.#end("given-up", now, why);
    this.readFailed(read, why, now);
    this.#readAt = now + READ_PAUSE * 2 ** (this.#notFound - 1);
  }

  /**
   * @param {string} why
   * @param {number} now
   */
  giveUp(why, now) {
    if (this.state !== "deleted") this.#end("given-up", now, why);
  }

  /**
   * End the copy, as the reporter has deleted the object.
   *
   * @param {number} now
   */
  delete(now) {
    if (this.state !== "deleted") this.#end("deleted", now, "deleted by its reporter");
  }

  /** @param {number} now */
  timeOver(now) {
    if (now < this.deadline) return;
    if (this.state === "syncing") return this.#end("given-up", now, "no snapshot came in time");
    if (this.state === "live") {
      this.#read();
      this.#readAt = now + Math.min(REPEAT_LAST, this.#quiet);
      return;
    }
    if (now >= this.#until) this.#step("read-failed", now, "the read was not answered");
    this.#read();
  }

  /**
   * Make a transition, and set the deadline of the new state.
   *
   * @param {string} trigger
   * @param {number} now
   * @param {string} [why]
   */
  #step(trigger, now, why = "") {
    this.#port.step(this.#entity.step(trigger, why, trigger === "changed" ? ["gap"] : []));
    this.#until = now + this.#entity.patience;
    this.#readAt = Infinity;
  }

  /**
   * @param {number} version
   * @param {JsonObject} data
   * @param {Published | null} change
   */
  #show(version, data, change) {
    this.version = version;
    this.data = freeze(data);
    this.#port.show(version, this.data, change);
  }

  /**
   * Return why a change cannot be applied to the copy; empty: it can, or is old.
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
      this.#end("given-up", now, `its value has more than ${VALUE_BYTES} bytes`);
    } else this.#show(version, data, change);
  }

  /**
   * Keep a change whose predecessors are missing; of too many such changes drop the oldest.
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

  #read() {
    this.#reads += 1;
    this.#readAt = Infinity;
    this.#port.read(this.#reads);
  }

  /**
   * @param {"given-up" | "deleted"} trigger
   * @param {number} now
   * @param {string} why
   */
  #end(trigger, now, why) {
    this.#early.clear();
    this.#step(trigger, now, trigger === "given-up" ? why : "");
    this.#port.end(why);
  }
}
