/** Values of data objects, and their changes: `fsm/sync/value` explains them. */

import { MAX_JSON_DEPTH, VALUE_BYTES, VALUE_DEPTH } from "./constants.js";
import { BadMessageError, byteLength, checkSize, isObject, jsonOf, sorted } from "./json.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */

/**
 * One change. Without `attribute` it is the whole value; without `value` it removes.
 * @typedef {{version?: number, attribute?: string, value?: Json, attributeType?: string,
 *   operation?: string, source?: string}} Change
 */

/**
 * The effect of a change on one attribute; null: there was nothing, or is nothing any more.
 * @typedef {{path: string, old: Json, new: Json, version: number}} ObjectChange
 */

/**
 * @param {object} value
 * @param {string} key
 */
const has = (value, key) => Object.prototype.hasOwnProperty.call(value, key);

/**
 * Return what is at a key; undefined: nothing is.
 *
 * @param {Json | undefined} value
 * @param {string} key
 * @returns {Json | undefined}
 */
function part(value, key) {
  if (Array.isArray(value)) {
    const index = indexIn(value, key);
    return index < 0 ? undefined : value[index];
  }
  return isObject(value) && has(value, key) ? value[key] : undefined;
}

/**
 * @param {Json[]} elements
 * @param {string} segment
 * @returns {number} the index that a segment of a path names; -1: it names none
 */
function indexIn(elements, segment) {
  return /^[0-9]{1,9}$/.test(segment) && Number(segment) < elements.length ? Number(segment) : -1;
}

/**
 * Return the value at a dotted path; undefined: there is none.
 *
 * @param {Json} value
 * @param {string} path
 * @returns {Json | undefined}
 */
export const valueAt = (value, path) =>
  path.split(".").reduce(part, /** @type {Json | undefined} */ (value));

/**
 * Refuse a path that leads deeper than any value is nested.
 *
 * @param {string | undefined} path
 */
export function checkPath(path) {
  if (path !== undefined && path.split(".").length > MAX_JSON_DEPTH) {
    throw new BadMessageError(`a path has more than ${MAX_JSON_DEPTH} segments`);
  }
}

/**
 * Read a change that the reporter of an object has published; null: it is none.
 *
 * @param {JsonObject} body
 * @returns {Change & {version: number} | null}
 */
export function changeIn({ version, attribute, ...change }) {
  if (!Number.isInteger(version)) return null;
  const path = attribute ?? undefined;
  if (path !== undefined && typeof path !== "string") throw new BadMessageError("an attribute is named by a text");
  checkPath(path);
  return /** @type {Change & {version: number}} */ ({ ...change, version, attribute: path });
}

/**
 * Return a copy of what an object may have as its value, or a child.
 *
 * @template {Json} T
 * @param {T} value
 * @returns {T}
 */
export function checkedValue(value) {
  const copy = JSON.parse(jsonOf(value));
  checkSize(copy);
  if (depthOf(copy, VALUE_DEPTH) > VALUE_DEPTH) {
    throw new BadMessageError(`a value is nested deeper than ${VALUE_DEPTH}`);
  }
  const size = jsonSize(copy);
  if (size > VALUE_BYTES) {
    throw new BadMessageError(`it has ${size} bytes, and a value of an object at most ${VALUE_BYTES}`);
  }
  return freeze(copy);
}

/**
 * Return how deep a value is nested; what is deeper than `most` counts as one more.
 *
 * @param {Json | undefined} value
 * @param {number} most
 * @returns {number}
 */
export function depthOf(value, most) {
  if (typeof value !== "object" || value === null) return 0;
  if (most <= 0) return 1;
  return 1 + Math.max(0, ...Object.values(value).map((one) => depthOf(one, most - 1)));
}

/**
 * Return how many bytes a value has when it is written.
 *
 * @param {Json | undefined} value
 */
export const jsonSize = (value) => byteLength(JSON.stringify(value ?? null));

/**
 * Make a value one that cannot be changed in place; a frozen part is not looked into.
 *
 * @template {Json | undefined} T
 * @param {T} value
 * @returns {T}
 */
export function freeze(value) {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}

/**
 * Return whether two values are equal as JSON.
 *
 * @param {Json | undefined} one
 * @param {Json | undefined} other
 */
export const same = (one, other) => one === other || sorted(one) === sorted(other);

/**
 * Return a list without all elements that are equal to one of `gone`.
 *
 * @param {Json[]} elements
 * @param {Json[]} gone
 */
function withoutAll(elements, gone) {
  const keys = new Set(gone.map(sorted));
  return elements.filter((one) => !keys.has(sorted(one)));
}

// ---- changes

/**
 * Return a value after one change; it shares what the change did not touch.
 *
 * @param {JsonObject} value
 * @param {Change} change
 * @returns {JsonObject}
 */
export function changed(value, change) {
  if (change.attribute === undefined) return isObject(change.value) ? change.value : value;
  const after = afterwards(value, change.attribute.split("."), change);
  return isObject(after) ? after : value;
}

/**
 * Return a value without what is at a path.
 *
 * @param {Json} value
 * @param {string} path
 * @returns {Json}
 */
export function withoutAttribute(value, path) {
  const after = afterwards(value, path.split("."), {});
  return after === undefined ? value : after;
}

/**
 * @param {Json | undefined} present undefined: nothing is there
 * @param {string[]} path
 * @param {Change} change
 * @returns {Json | undefined}
 */
function afterwards(present, [name, ...rest], change) {
  if (name === undefined) return changedHere(present, change);
  if (Array.isArray(present)) {
    const index = indexIn(present, name);
    if (index < 0) return present;
    const made = afterwards(present[index], rest, change);
    return [...present.slice(0, index), ...(made === undefined ? [] : [made]), ...present.slice(index + 1)];
  }
  let object = present;
  if (!isObject(object)) {
    if ((change.value ?? null) === null || change.operation === "remove") return object;
    object = {};
  }
  const made = afterwards(part(object, name), rest, change);
  if (made !== undefined) return { ...object, [name]: made };
  return Object.fromEntries(Object.entries(object).filter(([key]) => key !== name));
}

/**
 * @param {Json | undefined} present
 * @param {Change} change
 * @returns {Json | undefined}
 */
function changedHere(present, { value = null, attributeType, operation }) {
  if (attributeType !== "array" || operation === undefined) return value ?? undefined;
  const elements = Array.isArray(value) ? value : [value];
  if (operation === "add") return [...(Array.isArray(present) ? present : []), ...elements];
  return Array.isArray(present) ? withoutAll(present, elements) : present;
}

/**
 * Return whether a value can be set at a path: elements of lists on it must exist.
 *
 * @param {JsonObject} value
 * @param {string} path
 */
export function canBeSet(value, path) {
  /** @type {Json | undefined} */
  let here = value;
  for (const segment of path.split(".")) {
    if (Array.isArray(here) && indexIn(here, segment) < 0) return false;
    here = part(here, segment);
  }
  return true;
}

/**
 * Return the effect of a published change.
 *
 * @param {JsonObject} before
 * @param {JsonObject} after
 * @param {Change} change
 * @returns {ObjectChange}
 */
export function described(before, after, { attribute: path, value = null, operation, version = 0 }) {
  const whole = { path: "", old: before, new: after, version };
  if (path === undefined) return whole;
  const isRemoval = value === null && operation === undefined;
  const now = isRemoval ? null : valueAt(after, path) ?? null;
  if (now === null && !isRemoval && same(before, after)) return whole;
  return { path, old: valueAt(before, path) ?? null, new: now, version };
}
