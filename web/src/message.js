/** Messages in normal form: read any spelling of a peer, make answers, write frames. */

import * as urls from "./address.js";
import { CODES, EVENT_PARTS, TYPES } from "./constants.js";
import * as constants from "./constants.js";
import * as json from "./json.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {typeof TYPES[number]} MessageType */

/**
 * The sender of a message, as the own node has established it.
 * @typedef {{runtime: string, user: string | null, vouchedBy: string}} SenderIdentity
 */

/**
 * One message in normal form, which is never changed in place.
 * @typedef {{readonly id: number, readonly type: MessageType, readonly from: string,
 *   readonly to: string, readonly body: JsonObject, readonly identity?: SenderIdentity}} Message
 */

const LEAST_RETRY = 0.001;
const MOST_RETRY = 3600;

/** @param {Message} message */
export const isResponse = (message) => message.type === "response";

/** @param {Message} message */
export function isEvent(message) {
  const { type, to } = message;
  if (type === "create" || type === "update") {
    if (/** @type {readonly string[]} */ (EVENT_PARTS).includes(urls.lastSegment(to)) || urls.isInbox(to)) {
      return true;
    }
  }
  return (type === "update" || type === "delete") && to.includes("/children/");
}

/** @param {Message} message */
export const isRequest = (message) => !isResponse(message) && !isEvent(message);

/** @param {Message} message */
export const codeOf = (message) => (Number.isInteger(message.body.code) ? Number(message.body.code) : 0);

/** @param {Message} message */
export const isFinal = (message) => isResponse(message) && codeOf(message) >= 200;

/** @param {Message} message */
export const isSuccess = (message) => isFinal(message) && codeOf(message) < 300;

/** @param {Message} message */
export const reasonIn = (message) =>
  typeof message.body.description === "string" ? message.body.description : "";

/**
 * Return the runtime in the identity of a message's sender; "" without an identity.
 *
 * @param {Message} message
 */
export const peerOf = (message) => message.identity?.runtime ?? "";

/**
 * @param {Message} message
 * @returns {string[]}
 */
export const viaOf = (message) =>
  Array.isArray(message.body.via)
    ? /** @type {string[]} */ (message.body.via.filter((one) => typeof one === "string"))
    : [];

/**
 * Return an identifier of a message, which is the same at every hop.
 *
 * @param {Message} message
 */
export function instanceId(message) {
  if (!isResponse(message)) return `${message.from}#${message.id}`;
  const { source, sequence } = message.body;
  const by = typeof source === "string" ? `@${source}` : "";
  const nth = !isFinal(message) && Number.isInteger(sequence) ? `.${sequence}` : "";
  return `${message.to}#${message.id}>${message.from}!${codeOf(message)}${nth}${by}`;
}

/** @param {Message} response */
export const requestId = (response) => `${response.to}#${response.id}`;

/**
 * Return the key of a request, or of the request that a response answers.
 *
 * @param {Message} message
 */
export const keyOf = (message) =>
  isResponse(message)
    ? `${message.to}|${message.from}|${message.id}`
    : `${message.from}|${message.to}|${message.id}`;

/**
 * Return the key of the request that an event gives up, as its sender no longer waits; null: it is
 * another message.
 *
 * @param {Message} message
 */
export const keyGivenUp = ({ type, from, to, body }) =>
  type === "create" && urls.isInbox(to) && Number.isInteger(body.givenUp)
    ? `${from}|${to.slice(0, to.lastIndexOf("/"))}|${body.givenUp}`
    : null;

/**
 * @param {Message} request
 * @param {number} code
 * @param {JsonObject} [body]
 * @returns {Message}
 */
export function replyTo(request, code, body = {}) {
  /** @type {JsonObject} */
  const answer = { code, ...body };
  if (code === CODES.UNAVAILABLE) {
    // It means "not now": a refusal that another attempt does not change has another code.
    answer.description ??= "it cannot be done now";
    answer.retryAfter ??= constants.RETRY_AFTER;
  }
  return { id: request.id, type: "response", from: request.to, to: request.from, body: answer };
}

/**
 * Answer a request with a refusal that a person can read.
 *
 * @param {Message} request
 * @param {number} code
 * @param {string} why
 * @param {number | null} [retryAfter] seconds; null: never, or not known; 503 then says RETRY_AFTER
 * @returns {Message}
 */
export function refuse(request, code, why, retryAfter = null) {
  /** @type {JsonObject} */
  const body = { description: why };
  if (retryAfter !== null) {
    const seconds = Math.min(Math.max(retryAfter, LEAST_RETRY), MOST_RETRY);
    body.retryAfter = Math.round(seconds * 1000) / 1000;
  }
  return replyTo(request, code, body);
}

/**
 * Make the answer that a requester gets in place of one that cannot be read or written.
 *
 * @param {Message} answer only its id and ends count
 * @param {string} why
 * @returns {Message}
 */
export const malformedAnswer = ({ id, from, to }, why) => ({
  id,
  type: "response",
  from,
  to,
  body: { code: CODES.BAD_BACKEND, description: `its answer is malformed: ${why}` },
});

/**
 * Return the message with a stub appended to its `via`.
 *
 * @param {Message} message
 * @param {string} stub
 * @returns {Message}
 */
export const stamped = (message, stub) => ({
  ...message,
  body: { ...message.body, via: [...viaOf(message), stub] },
});

const HOP_FIELDS = new Set(["via", "auth", "idToken", "accessToken", "durable"]);

/**
 * Return whether two messages with the same key are the same message.
 *
 * @param {Message} first
 * @param {Message} second
 */
export function sameRequest(first, second) {
  /** @param {Message} one */
  const essence = (one) =>
    json.sorted(Object.fromEntries(Object.entries(one.body).filter(([key]) => !HOP_FIELDS.has(key))));
  return first.type === second.type && essence(first) === essence(second);
}

// ---- reading what peers write (`specs/dialects`)

/** @type {Readonly<Record<string, string>>} */
const KEY_ALIASES = {
  desc: "description",
  Message: "description",
  Value: "value",
  Code: "code",
  subscriber: "source",
};
/** @type {Readonly<Record<string, number>>} */
const CODE_ALIASES = { "1XX": 100, "2XX": 200, error: 500 };
/** @type {Readonly<Record<string, string>>} */
const STATUS_ALIASES = { connected: "live", connecting: "in-progress", create: "created" };
const STATUS_WORDS = ["created", "in-progress", "live", "disconnected", "failed", "dead"];
const LIST_KEYS = ["resources", "subscribe", "unsubscribe", "resource"];
const OBJECT_PARTS = ["changes", "subscription", "observers", "status", "registration"];
const ALLOCATION_ALIASES = ["hyperty-address-allocation", "object-address-allocation"];
/** @type {Readonly<Record<string, string[]>>} */
const CHILDREN = { comm: ["resources"] };

/**
 * @param {Record<string, unknown>} table
 * @param {string} key
 */
const has = (table, key) => Object.prototype.hasOwnProperty.call(table, key);

/**
 * Convert one message in any spelling of a peer to normal form.
 *
 * @param {JsonObject} raw
 * @param {{believes?: boolean}} [options] whether the writer says who the sender is
 * @returns {Message}
 */
export function normalise(raw, { believes = false } = {}) {
  const { identity, ...rest } = envelope(raw);
  const message = { ...rest, body: bodyOf(rest) };
  const sender = believes ? readSender(identity) : null;
  return sender ? { ...message, identity: sender } : message;
}

/**
 * @param {JsonObject} raw
 * @returns {Omit<Message, "identity"> & {identity: Json | undefined}}
 */
function envelope(raw) {
  const type = typeOf(raw.type);
  const head = { id: idOf(raw.id), type, from: end(raw, "from"), to: end(raw, "to") };
  const { identity, ...body } = rawBody(raw, type);
  return { ...head, body, identity };
}

/**
 * @param {Json | undefined} value
 * @returns {MessageType}
 */
function typeOf(value) {
  const known = typeof value === "string" && TYPES.find((one) => one === value.toLowerCase());
  if (!known) throw new json.BadMessageError(`type must be one of ${TYPES.join(", ")}`);
  return known;
}

/** @param {Json | undefined} value */
function idOf(value) {
  const id = typeof value === "string" && /^[1-9][0-9]{0,15}$/.test(value) ? Number(value) : value;
  if (typeof id !== "number" || !Number.isInteger(id) || id <= 0 || id > constants.MAX_ID) {
    throw new json.BadMessageError(`id must be a whole number from 1 to ${constants.MAX_ID}`);
  }
  return id;
}

/**
 * @param {JsonObject} raw
 * @param {string} field
 */
function end(raw, field) {
  const value = raw[field];
  if (Array.isArray(value)) {
    throw new json.BadMessageError(`${field} names several addresses; send one message each`);
  }
  if (typeof value !== "string") throw new json.BadMessageError(`${field} is missing or no text`);
  return said(field, () => normalAddress(value));
}

/**
 * @template T
 * @param {string} field
 * @param {() => T} read
 */
function said(field, read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof urls.AddressError) throw new json.BadMessageError(`${field} ${error.message}`);
    throw error;
  }
}

/**
 * @param {JsonObject} raw
 * @param {MessageType} type
 */
function rawBody(raw, type) {
  if (!has(raw, "body") && (type === "read" || type === "delete")) return {};
  if (!json.isObject(raw.body)) throw new json.BadMessageError(`${type} needs a body, and a body is an object`);
  return raw.body;
}

/**
 * Return the normal form of an address in any known spelling.
 *
 * @param {string} text
 */
export function normalAddress(text) {
  const url = urls.parse(text);
  const { path } = url;
  if (url.scheme === "domain" && url.domain.startsWith("msg-node.")) {
    const isAlias = path.length === 1 && ALLOCATION_ALIASES.includes(path[0]);
    return urls.write(isAlias ? { ...url, path: ["address-allocation"] } : url);
  }
  const names = has(CHILDREN, url.scheme) ? CHILDREN[url.scheme] : [];
  const whole = path.at(-1) === "child" && names.includes(path.at(-2) ?? "") ? path.slice(0, -1) : path;
  const root = whole.slice(0, -1);
  const name = whole.at(-1) ?? "";
  if (root.length && names.includes(name) && root.at(-1) !== "children") {
    return urls.write({ ...url, path: [...root, "children", name] });
  }
  return urls.write(url);
}

/**
 * Return the canonical text of the address in a field; refuse any other value.
 *
 * @param {Json | undefined} value
 * @param {string} field
 */
export function address(value, field) {
  if (typeof value !== "string") throw new json.BadMessageError(`${field} must be one address, as text`);
  return said(field, () => urls.canonical(value));
}

/**
 * Return the canonical addresses in a field, which may be a list or a single one.
 *
 * @param {Json | undefined} value
 * @param {string} field
 * @returns {string[]}
 */
export function addresses(value, field) {
  const listed = Array.isArray(value) ? value : [value];
  if (listed.length > constants.MAX_LIST) {
    throw new json.BadMessageError(`${field} lists more than ${constants.MAX_LIST} addresses`, CODES.TOO_LARGE);
  }
  return listed.map((one) => address(one, field));
}

/**
 * @param {Json | undefined} one
 * @param {Json | undefined} other
 */
const same = (one, other) => json.sorted(one) === json.sorted(other);

/** @param {JsonObject} body */
function commonKeys(body) {
  /** @type {Map<string, Json | undefined>} */
  const normal = new Map();
  for (const [key, value] of Object.entries(body)) {
    const name = has(KEY_ALIASES, key) ? KEY_ALIASES[key] : key;
    if (normal.has(name) && !same(normal.get(name), value)) {
      throw new json.BadMessageError(`${name} is given twice and differs`);
    }
    normal.set(name, value);
  }
  return /** @type {JsonObject} */ (Object.fromEntries(normal));
}

/** @param {JsonObject} body */
function commonAddresses(body) {
  const via = has(body, "via") ? { via: addresses(body.via, "via") } : {};
  const source = has(body, "source") ? { source: address(body.source, "source") } : {};
  return { ...body, ...via, ...source };
}

/**
 * @param {Omit<Message, "identity">} message
 * @returns {JsonObject}
 */
function bodyOf(message) {
  const body = commonAddresses(commonKeys(message.body));
  const { type, to } = message;
  if (type === "response") return answerCode(body);
  if (has(body, "code")) throw new json.BadMessageError("only answers carry a code");
  if (type === "subscribe" || type === "unsubscribe") return pathBody(to, body);
  if (type === "create" || type === "update") {
    if (to.endsWith("/status")) return statusValue(body);
    const isRecord = to.endsWith("/registration") || to.startsWith("domain://registry.");
    return isRecord ? recordStatus(body) : body;
  }
  if (type === "forward") return forwarded(body);
  return type === "delete" && isPart(to, "address-allocation") ? freed(body) : body;
}

/** @param {JsonObject} body */
function answerCode(body) {
  let { code } = body;
  if (typeof code === "string") {
    if (has(CODE_ALIASES, code)) code = CODE_ALIASES[code];
    else code = /^[0-9]+$/.test(code) ? Number(code) : null;
  }
  if (typeof code !== "number" || !Number.isInteger(code) || code < 100 || code > 599) {
    throw new json.BadMessageError("an answer needs a code from 100 to 599");
  }
  return { ...body, code };
}

/**
 * @param {string} to
 * @param {string} part
 */
const isPart = (to, part) => to.startsWith("domain://msg-node.") && to.split("/").slice(3).join("/") === part;

/**
 * @param {string} to
 * @param {JsonObject} body
 */
function pathBody(to, body) {
  const isPath = urls.schemeOf(to) === "hyperty-runtime"
    ? to.split("/").slice(4).join("/") !== "sm"
    : isPart(to, "sm");
  if (!isPath) return body;
  const listed = pathList(isPart(to, "sm") ? seedList(body) : body);
  if (!Array.isArray(listed.resources)) return listed;
  const resources = listed.resources.map((one) => said("resources", () => normalAddress(String(one))));
  return { ...listed, resources };
}

/** @param {JsonObject} body */
function pathList(body) {
  /** @type {[string, string[]][]} */
  const given = LIST_KEYS.filter((key) => has(body, key)).map((key) => [key, addresses(body[key], key)]);
  if (!given.length) return body;
  const [[firstKey, first], ...others] = given;
  for (const [key, listed] of others) {
    if (!same(listed, first)) {
      throw new json.BadMessageError(`${firstKey} and ${key} list different addresses`);
    }
  }
  return { ...without(body, LIST_KEYS), resources: first };
}

/**
 * @param {JsonObject} body
 * @param {string[]} keys
 * @returns {JsonObject}
 */
const without = (body, keys) =>
  Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)));

/** @param {JsonObject} body */
function seedList(body) {
  if (!has(body, "childrenResources")) return body;
  const children = body.childrenResources;
  if (!has(body, "resource") || !Array.isArray(children) || children.length >= constants.MAX_LIST) {
    throw new json.BadMessageError("childrenResources must be a list of names beside one resource");
  }
  const root = address(body.resource, "resource");
  if (OBJECT_PARTS.includes(urls.lastSegment(root))) {
    throw new json.BadMessageError("resource names a part of an object where the object is expected");
  }
  const listed = [
    `${root}/changes`,
    ...children.map((name) => {
      if (typeof name !== "string" || name.includes("/")) {
        throw new json.BadMessageError("childrenResources must be names, not addresses");
      }
      return address(`${root}/children/${name}`, "childrenResources");
    }),
  ];
  const rest = without(body, ["resource", "childrenResources"]);
  if (has(rest, "resources") && !same(addresses(rest.resources, "resources"), listed)) {
    throw new json.BadMessageError("resources and childrenResources list different addresses");
  }
  return { ...rest, resources: listed };
}

/**
 * @param {Json | undefined} value
 * @returns {Json | undefined}
 */
function statusWord(value) {
  if (typeof value !== "string") return value;
  const lower = value.toLowerCase();
  const word = has(STATUS_ALIASES, lower) ? STATUS_ALIASES[lower] : lower;
  return STATUS_WORDS.includes(word) ? word : value;
}

/** @param {JsonObject} body */
const statusValue = (body) => (has(body, "value") ? { ...body, value: statusWord(body.value) } : body);

/** @param {JsonObject} body */
function recordStatus(body) {
  const { value } = body;
  if (json.isObject(value) && has(value, "status")) {
    return { ...body, value: { ...value, status: statusWord(value.status) } };
  }
  return body.attribute === "status" ? statusValue(body) : body;
}

/** @param {JsonObject} body */
function freed(body) {
  let normal = outOfValue(body, "allocationKey", "resource");
  normal = outOfValue(normal, "childrenResources", "childrenResources");
  if (Array.isArray(normal.resource)) {
    if (normal.resource.length !== 1) {
      throw new json.BadMessageError("resource names one block; free others by other messages");
    }
    normal = { ...normal, resource: normal.resource[0] };
  }
  const listed = normal.childrenResources;
  if (Array.isArray(listed) && Array.isArray(listed[0])) {
    const flat = listed.flat(1);
    if (flat.length > constants.MAX_LIST) {
      throw new json.BadMessageError(`childrenResources lists more than ${constants.MAX_LIST} addresses`, CODES.TOO_LARGE);
    }
    normal = { ...normal, childrenResources: flat };
  }
  return normal;
}

/**
 * @param {JsonObject} body
 * @param {string} old
 * @param {string} fresh
 * @returns {JsonObject}
 */
function outOfValue(body, old, fresh) {
  const { value } = body;
  if (!json.isObject(value) || !has(value, old)) return body;
  if (has(body, fresh) && !same(body[fresh], value[old])) {
    throw new json.BadMessageError(`${fresh} and ${old} in value name different blocks`);
  }
  const rest = without(value, [old]);
  const inner = Object.keys(rest).length ? { value: rest } : {};
  return { ...without(body, ["value"]), ...inner, [fresh]: value[old] };
}

/** @param {JsonObject} body */
function forwarded(body) {
  const inner = body.message;
  if (!json.isObject(inner)) throw new json.BadMessageError("forward needs a message in body.message");
  const { identity: _, ...message } = envelope(has(inner, "body") ? inner : { ...inner, body: {} });
  const content = message.type === "forward" ? message.body : bodyOf(message);
  const { id, type, from, to } = message;
  return { ...body, message: { id, type, from, to, ...(has(inner, "body") ? { body: content } : {}) } };
}

/**
 * Read the sender's identity from the value of `identity` in a body; null: malformed.
 *
 * @param {Json | undefined} value
 * @returns {SenderIdentity | null}
 */
export function readSender(value) {
  if (!json.isObject(value)) return null;
  const { runtime, user = null, vouchedBy } = value;
  const named = typeof user === "string" ? user : null;
  if (typeof runtime !== "string" || typeof vouchedBy !== "string") return null;
  if (!["identity-provider", "domain", "none"].includes(vouchedBy)) return null;
  if ((named === null) !== (vouchedBy === "none")) return null;
  try {
    const url = urls.parse(runtime);
    if (url.scheme !== "hyperty-runtime" || url.path.length !== 1) return null;
    return { runtime: urls.write(url), user: named === null ? null : urls.canonical(named), vouchedBy };
  } catch {
    return null;
  }
}

// ---- frames

/**
 * A line that is no message; `answer` is the refusal to send back, null if it names no sender or is
 * an answer; `replacement` is what the requester gets in place of an answer.
 * @typedef {{error: json.BadMessageError, answer: Message | null, replacement: Message | null}} BadLine
 */

/**
 * Read the lines of a frame without throwing; a bad line does not affect others.
 * A malformed answer is followed by the message that replaces it.
 *
 * @param {string} frame
 * @returns {(Message | BadLine)[]}
 */
export function readFrame(frame) {
  const lines = frame.split("\n").filter((line) => line.trim());
  const read = lines.slice(0, constants.FRAME_MESSAGES).flatMap((line) => {
    const item = readLine(line);
    return "error" in item && item.replacement ? [item, item.replacement] : [item];
  });
  if (lines.length > constants.FRAME_MESSAGES) {
    const why = `a frame holds more than ${constants.FRAME_MESSAGES} messages`;
    read.push({ error: new json.BadMessageError(why, CODES.TOO_LARGE), answer: null, replacement: null });
  }
  return read;
}

/**
 * @param {string} line
 * @returns {Message | BadLine}
 */
export function readLine(line) {
  /** @type {Json} */
  let raw = null;
  try {
    raw = json.parse(line);
    return normalise(json.checkObject(line, raw, constants.IDENTITY_BYTES), { believes: true });
  } catch (error) {
    if (!(error instanceof json.BadMessageError)) throw error;
    return badLine(raw ?? json.headOf(line), error);
  }
}

/**
 * Return a bad line with the refusal of its request, or the replacement of its answer, if possible.
 *
 * @param {Json} raw
 * @param {json.BadMessageError} error
 * @returns {BadLine}
 */
export function badLine(raw, error) {
  const none = { error, answer: null, replacement: null };
  if (!json.isObject(raw)) return none;
  const { id, from, to, body } = raw;
  try {
    const message = normalise({ id, type: "read", from, to: Array.isArray(to) ? to[0] ?? null : to });
    if (json.textOf(raw.type).toLowerCase() !== "response") {
      return { ...none, answer: refuse(message, error.code, error.message) };
    }
    const isProvisional = json.isObject(body) && Number.isInteger(body.code) && Math.trunc(Number(body.code) / 100) === 1;
    return isProvisional ? none : { ...none, replacement: malformedAnswer(message, error.message) };
  } catch {
    return none;
  }
}

/**
 * Encode one message as one line of JSON.
 *
 * @param {Message} message
 */
export function writeLine({ id, type, from, to, body }) {
  const line = json.checkWritten(JSON.stringify({ id, type, from, to, body }));
  if (line.length > constants.MAX_FRAME_BYTES || json.byteLength(line) > constants.MAX_FRAME_BYTES) {
    throw new json.BadMessageError(`larger than ${constants.MAX_FRAME_BYTES} bytes`, CODES.TOO_LARGE);
  }
  return line;
}

/**
 * Join lines, in order, to as few frames as the limits permit.
 *
 * @param {string[]} lines
 * @returns {string[]}
 */
export function frames(lines) {
  /** @type {string[]} */
  const made = [];
  /** @type {string[]} */
  let batch = [];
  let size = 0;
  for (const line of lines) {
    const length = json.byteLength(line);
    if (batch.length && (batch.length === constants.FRAME_MESSAGES || size + length > constants.MAX_FRAME_BYTES)) {
      made.push(batch.join("\n"));
      batch = [];
      size = 0;
    }
    batch.push(line);
    size += length + 1;
  }
  if (batch.length) made.push(batch.join("\n"));
  return made;
}

/**
 * Return whether a message must be sent by the node, not by a link: messages that set up links, and
 * those about objects that need the node (`fsm/effects.py`).
 *
 * @param {Message} message
 */
export function isByNode({ type, from, to, body }) {
  const isOfLinks = /^(connection:|hyperty-runtime:\/\/[^/]+\/[^/]+\/p2p(handler|requester)\/)/;
  if (body.p2p === false || body.durable === true || isOfLinks.test(from) || isOfLinks.test(to)) return true;
  if (to.includes("/children/")) return true;
  const isPublished = type !== "response" && urls.isBelow(to, from);
  if (isPublished || (type !== "subscribe" && type !== "unsubscribe")) return isPublished;
  return to.endsWith("/subscription") || from.endsWith("/subscription") || type === "unsubscribe";
}
