/** The interpreter of the machines in `machines.js`: the only code that moves a state. */

import { MACHINES } from "./machines.js";

/**
 * A row: state left, trigger, state entered; conditions that hold, conditions that do not.
 * @typedef {(string | string[])[]} Row
 */

/**
 * A machine. `stays` says how many seconds an entity may be in a state.
 * @typedef {{ends: string[], stays: Readonly<Record<string, number>>, rows: Row[]}} Table
 */

/**
 * An entity moved.
 * @typedef {{do: "step", machine: string, key: string, old: string, new: string, cause: string,
 *   why: string}} Step
 */

/** The state before the first. */
export const ABSENT = "[*]";

/** A machine was asked for a step that its table does not have; the state did not move. */
export class UndeclaredTransitionError extends Error {
  /**
   * @param {string} machine
   * @param {string} key
   * @param {string} state
   * @param {string} trigger
   */
  constructor(machine, key, state, trigger) {
    super(`${machine} has no row for ${trigger} in ${state} (${key})`);
    this.name = "UndeclaredTransitionError";
    Object.assign(this, { machine, key, state, trigger });
  }
}

/** One entity of a machine; absent until its first step. */
export class Entity {
  #table;
  #state = ABSENT;

  /**
   * @param {string} machine name of its table
   * @param {string} key which entity, as traces write it
   */
  constructor(machine, key) {
    const table = MACHINES[machine];
    if (!table) throw new RangeError(`there is no machine ${machine}`);
    this.machine = machine;
    this.key = key;
    this.#table = table;
  }

  /** The state it is in; null: absent. */
  get state() {
    return this.#state === ABSENT ? null : this.#state;
  }

  /** Seconds it may stay in its state; infinity: without end. */
  get patience() {
    return this.#table.stays[this.#state] ?? Infinity;
  }

  /** Whether its history may stop here. */
  get mayEnd() {
    return this.#state === ABSENT || this.#table.ends.includes(this.#state);
  }

  /**
   * @param {string} trigger
   * @param {readonly string[]} given
   */
  #row(trigger, given) {
    return this.#table.rows.find(
      ([old, by, , when = [], unless = []]) =>
        old === this.#state &&
        by === trigger &&
        /** @type {string[]} */ (when).every((one) => given.includes(one)) &&
        !(/** @type {string[]} */ (unless).some((one) => given.includes(one))),
    );
  }

  /**
   * Return whether a row allows a trigger now.
   *
   * @param {string} trigger
   * @param {readonly string[]} [given] the conditions that are true
   */
  allows(trigger, given = []) {
    return this.#row(trigger, given) !== undefined;
  }

  /**
   * Follow the row for a trigger.
   *
   * @param {string} trigger
   * @param {string} [why] half a sentence for people
   * @param {readonly string[]} [given] the conditions that are true
   * @returns {Step}
   */
  step(trigger, why = "", given = []) {
    const row = this.#row(trigger, given);
    if (!row) throw new UndeclaredTransitionError(this.machine, this.key, this.#state, trigger);
    const old = this.#state;
    this.#state = /** @type {string} */ (row[2]);
    return { do: "step", machine: this.machine, key: this.key, old, new: this.#state, cause: trigger, why };
  }
}
