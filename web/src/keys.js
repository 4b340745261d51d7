/** The private key of a runtime, its signatures (`actors/keys/runtime_key.py`), and signed tokens. */

import { TOKEN_CHARS } from "./constants.js";
import { isObject, textOf } from "./json.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./json.js").JsonObject} JsonObject */

const PREFIX = "protofly/1";
const ALGORITHM = "Ed25519";
const encoder = new TextEncoder();

/** @param {Uint8Array | ArrayBuffer} bytes */
export function base64url(bytes) {
  const text = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @param {string} text */
export function fromBase64url(text) {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (one) => one.charCodeAt(0));
}

/**
 * Decode the JSON in one of the three parts of a token, without verifying the signature.
 *
 * @param {string} part
 * @returns {any}
 */
export const partOf = (part) => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(fromBase64url(part)));

/** @param {string | Uint8Array<ArrayBuffer>} content */
async function sha256(content) {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/**
 * Return the SHA-256 of a text or bytes, in hexadecimal digits.
 *
 * @param {string | Uint8Array<ArrayBuffer>} content
 */
export const sha256Hex = async (content) =>
  [...(await sha256(content))].map((one) => one.toString(16).padStart(2, "0")).join("");

/**
 * Return the thumbprint of a public key (RFC 7638).
 *
 * @param {string} publicKey
 */
export const thumbprintOf = async (publicKey) =>
  base64url(await sha256(`{"crv":"Ed25519","kty":"OKP","x":"${publicKey}"}`));

/** A runtime's private key; the browser never reveals its private part. */
export class RuntimeKey {
  #pair;

  /**
   * @param {CryptoKeyPair} pair
   * @param {string} publicKey 32 bytes in base64url
   * @param {string} thumbprint
   */
  constructor(pair, publicKey, thumbprint) {
    this.#pair = pair;
    this.public = publicKey;
    /** Name of the key (RFC 7638), the value of `cnf.jkt` of a login token that is bound to it. */
    this.thumbprint = thumbprint;
  }

  /**
   * Sign some texts for a purpose.
   *
   * @param {string} purpose
   * @param {string[]} parts
   */
  async sign(purpose, parts) {
    const text = encoder.encode(JSON.stringify([PREFIX, purpose, ...parts]));
    return base64url(await crypto.subtle.sign(ALGORITHM, this.#pair.privateKey, text));
  }
}

/**
 * Make a new key for a runtime, or use an existing key pair.
 *
 * @param {CryptoKeyPair} [pair] of Ed25519
 * @returns {Promise<RuntimeKey>}
 */
export async function openKey(pair) {
  const made = pair ?? /** @type {CryptoKeyPair} */ (
    await crypto.subtle.generateKey(ALGORITHM, false, ["sign", "verify"])
  );
  const publicKey = base64url(await crypto.subtle.exportKey("raw", made.publicKey));
  return new RuntimeKey(made, publicKey, await thumbprintOf(publicKey));
}

/**
 * Return whether a key signed some texts for a purpose.
 *
 * @param {string} publicKey in base64url
 * @param {string} purpose
 * @param {string[]} parts
 * @param {string} signature in base64url
 */
export async function isSigned(publicKey, purpose, parts, signature) {
  try {
    const key = await crypto.subtle.importKey("raw", fromBase64url(publicKey), ALGORITHM, false, ["verify"]);
    const text = encoder.encode(JSON.stringify([PREFIX, purpose, ...parts]));
    return await crypto.subtle.verify(ALGORITHM, key, fromBase64url(signature), text);
  } catch {
    return false;
  }
}

/**
 * Return the texts that a runtime signs when it opens a session; the purpose is the method.
 *
 * @param {string} domain
 * @param {string} runtime
 * @param {string} challenge
 * @param {string | null} token
 */
export async function signedParts(domain, runtime, challenge, token) {
  return [domain, runtime, challenge, token === null ? "" : await sha256Hex(token)];
}

// ---- tokens (`actors/keys/token.py`)

/** @param {string} namedCurve */
const curve = (namedCurve) => ({ name: "ECDSA", namedCurve });

/** How each algorithm is imported and verified, and the keys that it takes.
 * @type {Record<string, [string, any, any]>} */
const ALGORITHMS = {
  Ed25519: ["OKP Ed25519", { name: "Ed25519" }, "Ed25519"],
  ES256: ["EC P-256", curve("P-256"), { name: "ECDSA", hash: "SHA-256" }],
  ES384: ["EC P-384", curve("P-384"), { name: "ECDSA", hash: "SHA-384" }],
  RS256: ["RSA undefined", { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, "RSASSA-PKCS1-v1_5"],
  PS256: ["RSA undefined", { name: "RSA-PSS", hash: "SHA-256" }, { name: "RSA-PSS", saltLength: 32 }],
};
const RSA_BITS = 2048;

/** @param {unknown} alg */
const usual = (alg) => (alg === "EdDSA" ? "Ed25519" : alg);

/**
 * Return the algorithms of a key; an RSA key without `alg` has both of its type.
 *
 * @param {JsonObject} jwk
 */
function algorithmsOf({ alg, kty, crv, use = "sig", key_ops = ["verify"] }) {
  if (use !== "sig" || !Array.isArray(key_ops) || !key_ops.includes("verify")) return [];
  const fits = Object.keys(ALGORITHMS).filter((name) => ALGORITHMS[name][0] === `${kty} ${crv}`);
  return fits.filter((name) => alg === undefined || name === usual(alg));
}

/** Keys that could not be imported, remembered so that each is reported only once. */
const damaged = new WeakSet();

/**
 * Import a public key of a key set; null: the key is damaged, or too small.
 *
 * @param {JsonObject} jwk
 * @param {string} how name of the algorithm
 */
async function imported(jwk, how) {
  const { kty, crv, x, y, n, e } = /** @type {any} */ (jwk);
  try {
    const key = await crypto.subtle.importKey("jwk", { kty, crv, x, y, n, e }, ALGORITHMS[how][1], false, ["verify"]);
    if (!(/** @type {any} */ (key.algorithm).modulusLength < RSA_BITS)) return key;
  } catch {
    // A damaged key must not prevent the use of the others.
  }
  if (!damaged.has(jwk)) console.warn("protofly: a key is damaged or too small, and skipped:", jwk.kid);
  damaged.add(jwk);
  return null;
}

/**
 * Verify the signature of a token, and return its claims; null: none of the keys has signed it.
 *
 * @param {string} text
 * @param {Json | undefined} set of keys
 * @param {RegExp} kinds
 * @returns {Promise<JsonObject | null>}
 */
export async function signedClaims(text, set, kinds) {
  if (text.length > TOKEN_CHARS || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return null;
  const [head, body, signature] = text.split(".");
  const { alg, kid, typ = "JWT", ...odd } = partOf(head);
  if (Object.keys(odd).length || !kinds.test(textOf(typ))) return null;
  const keys = isObject(set) && Array.isArray(set.keys) ? set.keys : [];
  const covers = new TextEncoder().encode(`${head}.${body}`);
  for (const jwk of keys) {
    if (!isObject(jwk) || !jwk.kid || (kid !== undefined && jwk.kid !== kid)) continue;
    const name = algorithmsOf(jwk).find((one) => one === usual(alg));
    const key = name === undefined ? null : await imported(jwk, name);
    if (name === undefined || key === null) continue;
    const verifying = ALGORITHMS[name][2];
    if (await crypto.subtle.verify(verifying, key, fromBase64url(signature), covers)) {
      const claims = partOf(body);
      return isObject(claims) ? claims : null;
    }
  }
  return null;
}
