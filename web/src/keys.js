/** The key of a runtime, and proofs that it holds it: `actors/keys/runtime_key.py`. */

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
 * Return the name of a public key (RFC 7638).
 *
 * @param {string} publicKey
 */
export const thumbprintOf = async (publicKey) =>
  base64url(await sha256(`{"crv":"Ed25519","kty":"OKP","x":"${publicKey}"}`));

/** A runtime's private key; a browser never gives its private part out. */
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
 * Make a key, or take one that was made before.
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
