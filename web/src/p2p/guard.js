/** Sign the offers and answers of this runtime for direct links, and verify those of peers. */

import { domainOf, isBelow } from "../address.js";
import { CLOCK_SKEW, MAX_ICE_CANDIDATE, MAX_ICE_CANDIDATES, MAX_SDP } from "../constants.js";
import { isObject, textOf } from "../json.js";
import { fromBase64url, isSigned, sha256Hex, signedClaims, thumbprintOf } from "../keys.js";
import { asserted } from "./issuers.js";

/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../json.js").Json} Json */
/** @typedef {import("./end.js").Ice} Ice */

/**
 * Identification of the set-up that a signature belongs to; `answers` is empty for an offer.
 * @typedef {{signer: string, reader: string, object: string, answers: string, negotiation: number}} Bond
 */

/** @typedef {{key: import("../keys.js").RuntimeKey, said: import("../node.js").Said, domain: string,
 *   require: "identity-provider" | "domain" | "none",
 *   issuers: Record<string, import("./issuers.js").Issuer>}} Identity */

const FINGERPRINT = /^sha-256 (?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/;
const MEDIA = /^m=application [0-9]{1,5} UDP\/DTLS\/SCTP webrtc-datachannel$/;

/**
 * @param {Bond} bond
 * @param {string} owner
 * @param {JsonObject} shown
 * @param {string} sdp
 * @param {Json[]} candidates
 */
async function covered({ signer, reader, object, answers, negotiation }, owner, shown, sdp, candidates) {
  const certificate = fromBase64url(textOf(shown.certificate));
  return [
    ...[signer, reader, owner, object, answers, String(negotiation), await sha256Hex(certificate)],
    ...(await Promise.all([shown.assertion, shown.statement, sdp].map((one) => sha256Hex(textOf(one))))),
    textOf(shown.fingerprint),
    ...candidates.map((one) => {
      const { kind, address, secret, host = null } = isObject(one) ? one : {};
      return JSON.stringify([kind, address, secret, host]);
    }),
  ];
}

/**
 * @param {Bond} bond
 * @param {string} sdp
 * @param {Ice} ice
 */
const coveredOfIce = async ({ signer, reader, object, negotiation }, sdp, ice) => [
  ...[signer, reader, object, String(negotiation), await sha256Hex(sdp), ice.candidate],
  ...[ice.sdpMid ?? "", ice.sdpMLineIndex === null ? "" : String(ice.sdpMLineIndex)],
];

/** @param {Bond} bond */
const purposeOf = ({ answers }) => (answers ? "p2p-answer" : "p2p-offer");

/**
 * Sign an offer or answer, and return its field `security`.
 *
 * @param {Identity} identity
 * @param {Bond} bond
 * @param {string} owner
 * @param {string} sdp
 * @param {string} fingerprint
 * @returns {Promise<JsonObject>}
 */
export async function signed({ key, said }, bond, owner, sdp, fingerprint) {
  const { assertion, statement } = said;
  const security = {
    publicKey: key.public,
    fingerprint,
    assertion: assertion ?? undefined,
    statement: statement ?? undefined,
  };
  const signature = await key.sign(purposeOf(bond), await covered(bond, owner, security, sdp, []));
  return { ...security, signature };
}

/**
 * @param {Identity} identity
 * @param {Bond} bond
 * @param {string} sdp
 * @param {Ice} ice
 */
export async function signedIce({ key }, bond, sdp, ice) {
  return { ...ice, signature: await key.sign("p2p-ice", await coveredOfIce(bond, sdp, ice)) };
}

/**
 * Return why a session description is refused; null: it describes exactly one data channel.
 *
 * @param {string} sdp
 * @param {string} fingerprint
 * @param {boolean} isAnswer
 */
function flawOf(sdp, fingerprint, isAnswer) {
  const lines = sdp.split("\r\n");
  /** @param {string} head */
  const having = (head) => lines.filter((line) => line.startsWith(head));
  const media = having("m=");
  const prints = having("a=fingerprint:sha-256 ");
  const setup = isAnswer ? "a=setup:active" : "a=setup:actpass";
  if (sdp.length > MAX_SDP) return "its session description is too long";
  if (media.length !== 1 || !MEDIA.test(media[0])) return "it is not of one data channel";
  if (prints.length !== 1 || prints[0].slice("a=fingerprint:sha-256 ".length).toUpperCase() !== fingerprint.slice(8)) {
    return "its fingerprint is not the signed one";
  }
  return having("a=setup:").join() === setup ? null : "its role is not its own";
}

/**
 * Verify the value of a peer's Connection object.
 *
 * @param {Identity} identity
 * @param {JsonObject} data
 * @param {Bond} bond
 * @returns {Promise<{sdp: string | null, ice: Ice[], standing: import("./end.js").Standing}>}
 */
export async function verified(identity, data, bond) {
  const { security, owner, connectionDescription: described, candidates, iceCandidates } = data;
  const sdp = isObject(described) && typeof described.sdp === "string" ? described.sdp : null;
  /** @param {string | null} standing */
  const without = (standing) => ({ sdp, ice: [], standing });
  if ((security ?? null) === null) return without(null);
  if (!isObject(security)) return without("what the peer offers is no signature");
  try {
    const { publicKey, signature } = security;
    const key = textOf(publicKey);
    const fingerprint = textOf(security.fingerprint);
    const parts = await covered(bond, textOf(owner), security, sdp ?? "", Array.isArray(candidates) ? candidates : []);
    const isRight = isBelow(textOf(owner), bond.signer) &&
      (await isSigned(key, purposeOf(bond), parts, textOf(signature)));
    if (!isRight) return without("what the peer offers is not signed by the key that it names");
    if (sdp !== null) {
      if (!FINGERPRINT.test(fingerprint)) return without("the peer offers no fingerprint");
      const flaw = flawOf(sdp, fingerprint, bond.answers !== "");
      if (flaw) return without(`what the peer offers is refused: ${flaw}`);
    }
    const vouched = await vouching(identity, security, bond.signer, await thumbprintOf(key));
    if (typeof vouched === "string") return without(vouched);
    const { over, ...sender } = vouched;
    const until = performance.now() / 1000 + over - Date.now() / 1000;
    const standing = { identity: { runtime: bond.signer, ...sender }, fingerprint, until };
    const ice = await signedIceOf(key, bond, sdp ?? "", Array.isArray(iceCandidates) ? iceCandidates : []);
    return { sdp, ice, standing };
  } catch {
    return without("what the peer offers cannot be verified");
  }
}

/**
 * Return the ICE candidates that are well formed and signed by the peer's key.
 *
 * @param {string} key
 * @param {Bond} bond
 * @param {string} sdp
 * @param {Json[]} listed
 */
async function signedIceOf(key, bond, sdp, listed) {
  /** @type {Ice[]} */
  const candidates = [];
  for (const entry of listed.slice(0, MAX_ICE_CANDIDATES)) {
    if (!isObject(entry)) continue;
    const { candidate, sdpMid, sdpMLineIndex, signature } = entry;
    const ice = {
      candidate: textOf(candidate),
      sdpMid: typeof sdpMid === "string" ? sdpMid : null,
      sdpMLineIndex: typeof sdpMLineIndex === "number" ? sdpMLineIndex : null,
    };
    const isFit = ice.candidate.length <= MAX_ICE_CANDIDATE && (!ice.candidate || / udp /i.test(ice.candidate));
    if (isFit && (await isSigned(key, "p2p-ice", await coveredOfIce(bond, sdp, ice), textOf(signature)))) {
      candidates.push(ice);
    }
  }
  return candidates;
}

/**
 * Return which party vouches for a peer, and for which user; a text: why that does not suffice.
 *
 * @param {Identity} identity
 * @param {JsonObject} shown
 * @param {string} runtime
 * @param {string} thumbprint
 */
async function vouching(identity, { assertion, statement }, runtime, thumbprint) {
  const { require, issuers } = identity;
  const token = await asserted(issuers, textOf(assertion), domainOf(runtime), thumbprint);
  const said = await stated(identity, textOf(statement), runtime, thumbprint);
  const isToken = typeof token !== "string";
  const isSaid = typeof said !== "string";
  const isAboutIt = isToken && (token.runtime ?? runtime) === runtime;
  if (isAboutIt && isSaid && (said.user ?? token.user) !== token.user) {
    return "its domain and its identity provider name different users";
  }
  if (isAboutIt && token.runtime) {
    return { user: token.user, vouchedBy: "identity-provider", over: token.over };
  }
  if (require === "identity-provider") {
    const why = isToken ? `it is about ${token.runtime ?? "no runtime"}` : token;
    return `an identity provider has to vouch for the peer: ${why}`;
  }
  if (isSaid) return said;
  if (require !== "none") return `its domain has to vouch for the peer: ${said}`;
  return { user: null, vouchedBy: "none", over: Infinity };
}

/**
 * Verify a statement of this domain about a peer's key; return its content, or why it is refused.
 *
 * @param {Identity} identity
 * @param {string} text
 * @param {string} runtime
 * @param {string} thumbprint
 */
async function stated({ said, domain }, text, runtime, thumbprint) {
  if (!text) return "it shows nothing of the kind";
  if (domainOf(runtime) !== domain) return `the keys of ${domainOf(runtime)} are not known here`;
  const claims = await signedClaims(text, said.domainKeys, /^protofly-statement\+jwt$/).catch(() => null);
  if (!claims) return "no key that is believed signed it";
  const { iss, sub, cnf, iat, exp, user = null } = /** @type {any} */ (claims);
  const now = Date.now() / 1000;
  if (iss !== domain || sub !== runtime || cnf?.jkt !== thumbprint) return "it is about another";
  if (!(exp > now && iat <= now + CLOCK_SKEW)) return "its time is over, or has not begun";
  const vouchedBy = user === null ? "none" : "domain";
  return { user, vouchedBy, over: exp };
}
