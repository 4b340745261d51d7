/** Apply, check and describe changes of the values of data objects, as in `fsm/sync/value`. */

import { MAX_ID, MAX_JSON_DEPTH, VALUE_BYTES, VALUE_DEPTH } from "./constants.js";
import { BadMessageError, byteLength, checkSize, isObject, jsonOf, sorted } from "./json.js";
import { address } from "./message.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */

/**
 * One change. Without `attribute` it is the whole value; without `value` it removes.
 * @typedef {{version?: number, attribute?: string, value?: Json, attributeType?: string,
 *   operation?: string, source?: string, index?: number}} Change
 */

/**
 * The effect of a change on one attribute; null: it had no value before, or has none now.
 * @typedef {{path: string, old: Json, new: Json, version: number}} ObjectChange
 */

/**
 * @param {object} value
 * @param {string} key
 */
const has = (value, key) => Object.prototype.hasOwnProperty.call(value, key);

/**
 * Return the element of an object or list at a key; undefined: there is none.
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
 * Read a change that the reporter of an object has published.
 *
 * @param {JsonObject} body
 * @returns {Change & {version: number}}
 */
export function changeIn({ version, attribute, index, ...change }) {
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1 || version > MAX_ID) {
    throw new BadMessageError("a version is a whole number from 1");
  }
  const path = attribute ?? undefined;
  const place = index ?? undefined;
  if (place !== undefined && (!Number.isSafeInteger(place) || Number(place) < 0 || !change.operation)) {
    throw new BadMessageError("a place in a list is a whole number, and something is done there");
  }
  if (path !== undefined && typeof path !== "string") throw new BadMessageError("an attribute is named by a text");
  if (path === "") throw new BadMessageError("an attribute has a name");
  checkPath(path);
  checkWords(change);
  return /** @type {Change & {version: number}} */ ({ ...change, version, attribute: path, index: place });
}

/** @param {JsonObject} change */
function checkWords({ value = null, attributeType = null, operation = null, source = null, lastModified = null }) {
  const isOfList = operation === null ||
    ((operation === "add" || operation === "remove") && attributeType !== null && value !== null);
  if (!isOfList || (attributeType !== null && attributeType !== "array")) {
    throw new BadMessageError("an operation adds elements to an array, or removes them");
  }
  if (source !== null) address(source, "source");
  if (lastModified !== null && typeof lastModified !== "string") throw new BadMessageError("lastModified is a text");
}

/**
 * Check the value of a data object or child, and return a copy.
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
 * Return how deep a value is nested; for deeper nesting than `most`, return `most` plus one.
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
 * Freeze a value with all its objects and lists; those that are frozen already are skipped.
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
 * Return whether a published change can be applied to a value; if not, changes are missing.
 *
 * @param {JsonObject} value
 * @param {Change} change
 */
export function isApplicable(value, { attribute, value: brought, attributeType, operation, index }) {
  if (attribute === undefined) return isObject(brought);
  /** @type {Json | undefined} */
  let reached = value;
  for (const segment of attribute.split(".")) {
    if (Array.isArray(reached) && indexIn(reached, segment) < 0) return false;
    if (typeof reached !== "object" || reached === null) return reached === undefined && index === undefined;
    reached = part(reached, segment);
  }
  if (attributeType !== "array" || (operation ?? null) === null) return true;
  if (!Array.isArray(reached)) return reached === undefined && index === undefined;
  if (index === undefined) return true;
  if (operation === "add") return index <= reached.length;
  const count = Array.isArray(brought) ? brought.length : brought;
  if (!Number.isSafeInteger(count) || Number(count) < 0) return false;
  return count === 0 ? index === reached.length - 1 : index + Number(count) <= reached.length;
}

/**
 * Return a change in a form that every peer can apply: `published_change` in
 * `fsm/sync/value/value.py` explains it.
 *
 * @param {JsonObject} before
 * @param {JsonObject} after
 * @param {Change} asked
 * @returns {Change}
 */
export function publishedChange(before, after, asked) {
  if (asked.attribute === undefined) return { value: after };
  const steps = asked.attribute.split(".");
  const depth = nameable(before, steps);
  return (depth === steps.length && listChange(before, asked)) || settled(before, after, steps, depth);
}

/**
 * Return a change of a list as insertions or removals; null: the list must be set as a whole.
 *
 * @param {JsonObject} before
 * @param {Change} asked
 * @returns {Change | null}
 */
function listChange(before, { attribute = "", value, attributeType, operation }) {
  const end = attribute.lastIndexOf(".");
  const way = attribute.slice(0, Math.max(end, 0));
  if (attributeType !== "array" || (operation ?? null) === null) {
    const isElement = end >= 0 && Array.isArray(valueAt(before, way));
    if ((value ?? null) === null && isElement) return cut(way, Number(attribute.slice(end + 1)), 1);
    return { attribute, value, attributeType };
  }
  const place = valueAt(before, attribute);
  const elements = Array.isArray(value) ? value : [value ?? null];
  const array = { attribute, value: elements, attributeType, operation };
  if (place === undefined && operation === "add") return array;
  if (!Array.isArray(place)) return null;
  if (operation === "add") return { ...array, index: place.length };
  const keys = new Set(elements.map(sorted));
  const gone = [...place.keys()].filter((number) => keys.has(sorted(place[number])));
  if (!gone.length) return { ...array, value: [], operation: "add", index: place.length };
  if (gone[gone.length - 1] - gone[0] !== gone.length - 1) return null;
  return gone.length === elements.length ? { ...array, index: gone[0] } : cut(attribute, gone[0], gone.length);
}

/**
 * @param {string} attribute
 * @param {number} index
 * @param {number} value how many elements go
 */
const cut = (attribute, index, value) =>
  ({ attribute, value, attributeType: "array", operation: "remove", index });

/**
 * Return how many segments of a path a published change can name; the last one may be new.
 *
 * @param {JsonObject} value
 * @param {string[]} steps
 */
function nameable(value, steps) {
  /** @type {Json | undefined} */
  let reached = value;
  for (const [depth, step] of steps.entries()) {
    if (typeof reached !== "object" || reached === null || step.includes("://")) return depth;
    if (Array.isArray(reached) && indexIn(reached, step) < 0) return depth;
    reached = part(reached, step);
  }
  return steps.length;
}

/**
 * Return a change that sets or removes the deepest attribute on a path that can be named.
 *
 * @param {JsonObject} before
 * @param {JsonObject} after
 * @param {string[]} steps
 * @param {number} most how many steps can be named
 * @returns {Change}
 */
function settled(before, after, steps, most) {
  for (let depth = most; depth > 0; depth -= 1) {
    const attribute = steps.slice(0, depth).join(".");
    const value = valueAt(after, attribute);
    const holder = depth > 1 ? valueAt(before, steps.slice(0, depth - 1).join(".")) : before;
    if (value === undefined && isObject(holder)) return { attribute };
    if ((value ?? null) !== null) return { attribute, value };
  }
  return { value: after };
}

/**
 * Return a value after one change; unchanged objects and lists are shared with the old value.
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
 * Return a value without the attribute at a path.
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
function changedHere(present, { value = null, attributeType, operation, index }) {
  if (attributeType !== "array" || (operation ?? null) === null) return value ?? undefined;
  const elements = Array.isArray(value) ? value : [value];
  if (index !== undefined && !(operation === "remove" && Array.isArray(value))) {
    if (!Array.isArray(present)) return present;
    const gone = operation === "add" ? 0 : Math.max(Number(value), 1);
    const more = operation === "add" ? elements : [];
    return [...present.slice(0, index), ...more, ...present.slice(index + gone)];
  }
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
  let reached = value;
  for (const segment of path.split(".")) {
    if (Array.isArray(reached) && indexIn(reached, segment) < 0) return false;
    reached = part(reached, segment);
  }
  return true;
}

/**
 * Return the effect of a published change, as events report it.
 *
 * @param {JsonObject} before
 * @param {JsonObject} after
 * @param {Change} change
 * @returns {ObjectChange}
 */
export function described(before, after, change) {
  const { attribute, value = null, operation, version = 0, index } = change;
  const whole = { path: "", old: before, new: after, version };
  if (attribute === undefined) return whole;
  const isElement = index !== undefined && operation === "remove" && (value === 0 || value === 1);
  const isRemoval = isElement || (value === null && operation === undefined);
  const path = isElement ? `${attribute}.${index}` : attribute;
  const now = isRemoval ? null : valueAt(after, path) ?? null;
  if (now === null && !isRemoval && same(before, after)) return whole;
  return { path, old: valueAt(before, path) ?? null, new: now, version };
}
