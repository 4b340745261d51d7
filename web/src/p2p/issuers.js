/** Verify tokens of identity providers about the key of a peer, as `fsm/session/assertion.py`. */

import { nodeOf, parse, write } from "../address.js";
import { CLOCK_SKEW, SESSION_LIFE, TOKEN_LIFE, TOKEN_ROLES } from "../constants.js";
import { BadMessageError, isObject, numberOf, textOf } from "../json.js";
import { partOf, signedClaims } from "../keys.js";

/** @typedef {import("../json.js").JsonObject} JsonObject */
/** @typedef {import("../json.js").Json} Json */

/**
 * An identity provider that is believed: its keys, or what gets them; what its tokens are meant
 * for, else the domain of the peer; clients to which they may have been issued besides.
 * @typedef {{keys: JsonObject | (() => JsonObject | Promise<JsonObject>), audience?: string[],
 *   clients?: string[]}} Issuer
 */

/**
 * Return the keys of a set that verify tokens of an issuer (RFC 8725, 3.8): those that name it by
 * `iss`, and, unless other issuers have the same set, those that name none.
 *
 * @param {Json | undefined} set
 * @param {string} issuer
 * @param {boolean} isShared
 */
function ownKeys(set, issuer, isShared) {
  const keys = isObject(set) && Array.isArray(set.keys) ? set.keys : [];
  return keys.filter((key) => isObject(key) && (key.iss === undefined ? !isShared : key.iss === issuer));
}

/**
 * @param {Record<string, Issuer>} issuers
 * @param {Issuer} issuer
 */
const isSharedBy = (issuers, issuer) =>
  Object.values(issuers).filter(({ keys }) => keys === issuer.keys).length > 1;

/**
 * Refuse a configuration in which issuers share a key set, as each could sign for the other.
 *
 * @param {Record<string, Issuer>} issuers
 */
export function checkIssuers(issuers) {
  for (const [name, issuer] of Object.entries(issuers)) {
    const { keys } = Object(issuer);
    if (!isSharedBy(issuers, issuer)) continue;
    const all = isObject(keys) && Array.isArray(keys.keys) ? keys.keys : [null];
    if (all.every((key) => isObject(key) && typeof key.iss === "string")) continue;
    throw new TypeError(
      `issuers: ${name} has the keys of another issuer, which could sign for it; give each its own keys, or each key its issuer ('iss')`,
    );
  }
}

/** @typedef {{user: string | null, vouchedBy: string, until: number}} Vouching */

/**
 * @param {boolean} holds
 * @param {string} claim
 */
function demand(holds, claim) {
  if (!holds) throw new BadMessageError(`its claim '${claim}' is missing, or does not do here`);
}

/**
 * Return the user that a token names, and the runtime, if it names one.
 *
 * @param {JsonObject} claims
 * @param {Issuer} issuer
 * @param {{thumbprint: string, meant: string[], isOneOfSeveral: boolean, now: number}} terms
 */
export function judged(claims, { clients = [] }, { thumbprint, meant, isOneOfSeveral, now }) {
  /** @param {string} name */
  const textAt = (name) => {
    const value = textOf(claims[name]);
    demand(/^(?:[^\p{C}\p{Z}]| ){1,256}$/u.test(value), name);
    return value;
  };
  /** @param {string} name */
  const timeAt = (name) => {
    const value = claims[name];
    demand(typeof value === "number" && value >= 0, name);
    return numberOf(value);
  };
  /** @param {Json[]} list */
  const areTexts = (list) => list.every((one) => typeof one === "string");
  const { aud = null, cnf, roles, runtime = null } = claims;
  const name = textAt("iss");
  const audiences = Array.isArray(aud) ? aud : [aud];
  const isMeant = areTexts(audiences) && audiences.some((one) => meant.includes(textOf(one)));
  demand(isMeant, "aud");
  const many = new Set(audiences).size > 1;
  const party = "azp" in claims || !many ? "azp" : "client_id";
  const isOurs = party in claims ? [...meant, ...clients].includes(textAt(party)) : !many;
  demand(isOurs, party);
  demand(isObject(cnf) && Object.keys(cnf).length === 1 && cnf.jkt === thumbprint, "cnf");
  const host = (name.split("://")[1] ?? name).split("/")[0].split(":")[0];
  const subject = textAt("sub");
  const segment = subject.replaceAll("%", "%25").replaceAll("|", "%7C");
  const user = parse(subject.includes("://") ? subject : `user://${host}/${segment}`);
  const isIts = !isOneOfSeveral || `.${user.domain}`.endsWith(`.${host}`);
  demand(user.scheme === "user" && user.path.length > 0 && isIts, "sub");
  const given = roles ?? [];
  demand(Array.isArray(given) && given.length <= TOKEN_ROLES && areTexts(given), "roles");
  const issued = timeAt("iat");
  const ends = timeAt("exp");
  const begins = Math.max(issued, "nbf" in claims ? timeAt("nbf") : 0);
  const over = issued + SESSION_LIFE;
  // As at a node, a login outlives its token, by which the runtime has opened a session.
  const at = now < over ? Math.min(now, ends) : now;
  demand(ends + CLOCK_SKEW > at && ends - issued <= TOKEN_LIFE, "exp");
  demand(begins - CLOCK_SKEW <= at, "iat");
  return { user: write(user), runtime: runtime === null ? null : write(parse(textOf(runtime))), over };
}

/**
 * Verify a token about a peer's key; return its user, or the reason why it is refused.
 *
 * @param {Record<string, Issuer>} issuers by the name that their tokens have
 * @param {string} text
 * @param {string} domain of the peer
 * @param {string} thumbprint
 */
export async function asserted(issuers, text, domain, thumbprint) {
  if (!text) return "it shows nothing of the kind";
  try {
    const { iss } = partOf(text.split(".")[1] ?? "");
    const issuer = Object.hasOwn(issuers, textOf(iss)) ? issuers[iss] : null;
    if (!issuer) return "its issuer is not believed here";
    const keys = typeof issuer.keys === "function" ? await issuer.keys() : issuer.keys;
    const own = ownKeys(keys, iss, isSharedBy(issuers, issuer));
    const claims = await signedClaims(text, { keys: own }, /^(application\/)?(at\+)?jwt$/i);
    if (!claims) return "no key that is believed signed it";
    const meant = issuer.audience ?? [domain, nodeOf(domain)];
    const now = Date.now() / 1000;
    return judged(claims, issuer, { thumbprint, meant, isOneOfSeveral: Object.keys(issuers).length > 1, now });
  } catch (error) {
    return error instanceof BadMessageError ? error.message : "it is no token";
  }
}
