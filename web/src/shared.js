/** What the second module takes from the first one: see `build.mjs`. */

export { domainOf, isBelow, nodeOf, parse, runtimeOf, schemeOf, statusOf, subscriptionManager, write } from "./address.js";
export { Alarm, sleep } from "./clock.js";
export { blake2b } from "./digest.js";
export { Refusal } from "./hyperty.js";
export { BadMessageError, byteLength, checkSize, isObject, numberOf, sorted, textOf } from "./json.js";
export { fromBase64url, isSigned, partOf, sha256Hex, signedClaims, thumbprintOf } from "./keys.js";
export { Shares, TokenBucket } from "./limits.js";
export { Entity } from "./machine.js";
export {
  address,
  codeOf,
  frames,
  instanceId,
  isFinal,
  isRequest,
  isResponse,
  isSuccess,
  readLine,
  reasonIn,
  refuse,
  replyTo,
  stamped,
  viaOf,
  writeLine,
} from "./message.js";
export { valueDigest } from "./trace.js";
