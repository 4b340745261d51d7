/** Interpreter of the state machine tables in `machines.js`; no other code changes a state. */

import { MACHINES } from "./machines.js";

/**
 * A transition: old state, trigger, new state; conditions that must hold, and that must not.
 * @typedef {(string | string[])[]} Row
 */

/**
 * The table of a state machine. `stays`: how many seconds an entity may be in a state.
 * @typedef {{ends: string[], stays: Readonly<Record<string, number>>, rows: Row[]}} Table
 */

/**
 * A transition that an entity has made.
 * @typedef {{do: "step", machine: string, key: string, old: string, new: string, cause: string,
 *   why: string}} Step
 */

/** The name of the state of an entity that does not exist yet. */
export const ABSENT = "[*]";

/** The error for a transition that the table does not have; the state was not changed. */
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

/** An entity with a state, which a state machine table governs; absent until its first transition. */
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

  /** The present state; null: the entity does not exist yet. */
  get state() {
    return this.#state === ABSENT ? null : this.#state;
  }

  /** Seconds for which the entity may stay in its state; infinity: no limit. */
  get patience() {
    return this.#table.stays[this.#state] ?? Infinity;
  }

  /** Whether the present state may be the last one. */
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
   * Return whether the table has a transition for a trigger in the present state.
   *
   * @param {string} trigger
   * @param {readonly string[]} [given] the conditions that are true
   */
  allows(trigger, given = []) {
    return this.#row(trigger, given) !== undefined;
  }

  /**
   * Make the transition for a trigger.
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
