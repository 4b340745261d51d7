/** Read and write the JSON of messages: limits, strict parsing, and text with sorted keys. */

import { CODES } from "./constants.js";
import * as constants from "./constants.js";

/** @typedef {null | boolean | number | string | Json[] | JsonObject} Json */
/**
 * A JSON object; a key whose value is undefined is absent.
 * @typedef {{[key: string]: Json | undefined}} JsonObject
 */

/** The error for an invalid message; `code` is the reply code of the answer. */
export class BadMessageError extends Error {
  /**
   * @param {string} reason
   * @param {number} [code]
   */
  constructor(reason, code = CODES.MALFORMED) {
    super(reason);
    this.name = "BadMessageError";
    this.code = code;
  }
}

/**
 * @param {unknown} value
 * @returns {value is JsonObject}
 */
export const isObject = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Return a value from a peer if it is a text, else "". Conversion by `String` would be unsafe, as an
 * object may have its own `toString`.
 *
 * @param {Json | undefined} value
 */
export const textOf = (value) => (typeof value === "string" ? value : "");

/**
 * Return a value from a peer if it is a number, else 0.
 *
 * @param {unknown} value
 */
export const numberOf = (value) => (typeof value === "number" ? value : 0);

const encoder = new TextEncoder();

/** @param {string} text */
export const byteLength = (text) => encoder.encode(text).length;

/**
 * Return the approximate bytes of memory that a value read from JSON takes.
 *
 * @param {unknown} value
 */
export const memoryOf = (value) => 8 * JSON.stringify(value).length;

/**
 * Refuse JSON with too much nesting, too many keys, too long texts, or invalid Unicode.
 *
 * @param {Json | undefined} value
 * @param {number} [depth]
 */
export function checkSize(value, depth = 0) {
  if (typeof value === "string") return checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (depth >= constants.MAX_JSON_DEPTH) {
    throw new BadMessageError(`JSON is nested deeper than ${constants.MAX_JSON_DEPTH}`, CODES.TOO_LARGE);
  }
  if (Array.isArray(value)) {
    for (const part of value) checkSize(part, depth + 1);
    return;
  }
  const entries = Object.entries(value);
  if (entries.length > constants.MAX_JSON_KEYS) {
    throw new BadMessageError(`an object has more than ${constants.MAX_JSON_KEYS} keys`, CODES.TOO_LARGE);
  }
  for (const [key, part] of entries) {
    checkText(key);
    checkSize(part, depth + 1);
  }
}

/** Matches a surrogate without its other half, which is no valid Unicode. */
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** @param {string} text */
function checkText(text) {
  if (LONE.test(text)) throw new BadMessageError("there is half a character in the text");
  if (text.length > constants.MAX_JSON_TEXT && [...text].length > constants.MAX_JSON_TEXT) {
    throw new BadMessageError(`a text is longer than ${constants.MAX_JSON_TEXT} characters`, CODES.TOO_LARGE);
  }
}

/** Matches JSON with parts that need a closer check: surrogates, exponents, very long numbers. */
const SUSPECT = /\\u[dD][89a-fA-F]|[\ud800-\udfff]|[0-9][eE]|[0-9]{300}/;

/** @param {Json} value */
function checkValues(value) {
  /** @type {(Json | undefined)[]} */
  const left = [value];
  while (left.length) {
    const part = left.pop();
    const isOdd = typeof part === "string" ? LONE.test(part) : typeof part === "number" && !Number.isFinite(part);
    if (isOdd) throw new BadMessageError("this is no JSON");
    if (Array.isArray(part)) for (const element of part) left.push(element);
    else if (isObject(part)) for (const pair of Object.entries(part)) left.push(...pair);
  }
}

/**
 * Write a value as JSON; refuse a value such as NaN that JSON cannot represent.
 *
 * @param {Json | undefined} value
 * @returns {string} that of null, if the value is undefined
 */
export function jsonOf(value) {
  let text;
  try {
    text = JSON.stringify(value, finite) ?? "null";
  } catch (error) {
    if (error instanceof BadMessageError) throw error;
    throw new BadMessageError(`this is no JSON: ${error}`);
  }
  return checkWritten(text);
}

/**
 * Refuse written JSON with invalid Unicode, which shows as the escape of a lone surrogate.
 *
 * @param {string} text
 */
export function checkWritten(text) {
  if (/\\ud[89a-f]/.test(text)) parse(text);
  return text;
}

/**
 * @param {string} key
 * @param {unknown} value
 */
function finite(key, value) {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new BadMessageError(`${key}: ${value} is no JSON`);
}

/** Matches a field of an envelope or a code with its value, any other text, or a bracket. */
const HEAD_PART =
  /"(id|type|from|to|code)"[ \t\r\n]*:[ \t\r\n]*(?:"([^"\\]*)"|([0-9]{1,16}))|"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\]]/gs;

/**
 * Return the fields of the envelope, and the code, that can be read in a text of invalid JSON.
 *
 * @param {string} text
 * @returns {JsonObject}
 */
export function headOf(text) {
  /** @type {JsonObject} */
  const head = {};
  let depth = 0;
  for (const [part, name, word, number] of text.slice(0, constants.MAX_MESSAGE_BYTES).matchAll(HEAD_PART)) {
    if (part === "{" || part === "[") depth += 1;
    else if (part === "}" || part === "]") {
      depth -= 1;
      if (!depth) break;
    } else if (name === "code") {
      if (depth === 2 && number !== undefined) head.body = { code: Number(number) };
    } else if (name !== undefined && depth === 1) head[name] = word ?? Number(number);
  }
  return head;
}

/**
 * Parse JSON; refuse numbers that are too large, and texts with invalid Unicode.
 *
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BadMessageError("this is no JSON");
  }
  if (SUSPECT.test(text)) checkValues(value);
  return value;
}

/**
 * Return a value if it is one JSON object within the limits of a message.
 *
 * @param {string} text
 * @param {Json} value what was read from it
 * @param {number} more bytes that it may have beyond those of a message
 * @returns {JsonObject}
 */
export function checkObject(text, value, more) {
  if (text.length > constants.MAX_MESSAGE_BYTES + more || byteLength(text) > constants.MAX_MESSAGE_BYTES + more) {
    throw new BadMessageError(`larger than ${constants.MAX_MESSAGE_BYTES} bytes`, CODES.TOO_LARGE);
  }
  if (!isObject(value)) throw new BadMessageError("a message is a JSON object");
  checkSize(value);
  return value;
}

/**
 * @param {string} one
 * @param {string} other
 */
function byCodePoint(one, other) {
  // UTF-16 orders surrogates before the characters from U+E000 on; bytes of UTF-8 do not.
  const a = [...one];
  const b = [...other];
  for (let at = 0; at < a.length && at < b.length; at += 1) {
    const order = /** @type {number} */ (a[at].codePointAt(0)) - /** @type {number} */ (b[at].codePointAt(0));
    if (order) return order;
  }
  return a.length - b.length;
}

/** @param {number} value */
function number(value) {
  if (Number.isInteger(value) && Math.abs(value) <= constants.MAX_ID) return String(value === 0 ? 0 : value);
  const [mantissa, power] = value.toExponential().split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  const point = Number(power) + 1;
  if (digits.length <= point && point <= 16) return `${sign}${digits.padEnd(point, "0")}.0`;
  if (point > 0 && point <= 16) return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
  if (point > -5 && point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return `${sign}${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ""}e${point > 0 ? "+" : ""}${point - 1}`;
}

/**
 * Return a value as JSON with sorted keys: the same text that the Python implementation hashes.
 *
 * @param {Json | undefined} value
 * @returns {string}
 */
export function sorted(value) {
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return `[${value.map(sorted).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value ?? null);
  const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort(byCodePoint);
  return `{${keys.map((key) => `${JSON.stringify(key)}:${sorted(value[key])}`).join(",")}}`;
}
