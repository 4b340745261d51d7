/** What the second module takes from the first one: see `build.mjs`. */

export { domainOf, isBelow, runtimeOf, schemeOf, subscriptionManager } from "./address.js";
export { Alarm, sleep } from "./clock.js";
export { blake2b } from "./digest.js";
export { Refusal } from "./hyperty.js";
export { BadMessageError, byteLength, checkSize, isObject, sorted } from "./json.js";
export { Entity } from "./machine.js";
export { codeOf, isFinal, isRequest, isResponse, isSuccess, reasonIn, refuse, replyTo, viaOf } from "./message.js";
export { valueDigest } from "./trace.js";
