// What identity providers say of a peer: the judgement of their claims, which is that of programs
// (GOLDEN), signatures by the keys of a set, and whom a page opens a link to.

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { base64url, openKey, signedClaims } from "../../web/src/keys.js";
import { signed, verified } from "../../web/src/p2p/guard.js";
import { asserted, checkIssuers, judged } from "../../web/src/p2p/issuers.js";

const { subtle } = webcrypto;
const ISSUER = "https://sso.a.ex/realms/main";
const OWN = "hyperty-runtime://a.ex/ra";
const PEER = "hyperty-runtime://b.ex/rb";
const KINDS = /^(at\+)?jwt$/i;

/** How a key of each algorithm is made, and signs. */
const HOW = {
  EdDSA: [{ name: "Ed25519" }, "Ed25519"],
  ES256: [{ name: "ECDSA", namedCurve: "P-256" }, { name: "ECDSA", hash: "SHA-256" }],
  ES384: [{ name: "ECDSA", namedCurve: "P-384" }, { name: "ECDSA", hash: "SHA-384" }],
  RS256: [{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, "RSASSA-PKCS1-v1_5"],
  PS256: [{ name: "RSA-PSS", hash: "SHA-256" }, { name: "RSA-PSS", saltLength: 32 }],
};
const RSA = { publicExponent: new Uint8Array([1, 0, 1]), modulusLength: 2048 };

async function signer(alg, kid = alg, more = RSA) {
  const [how, by] = HOW[alg];
  const { publicKey, privateKey } = await subtle.generateKey({ ...how, ...more }, true, ["sign", "verify"]);
  const { key_ops: _, ext: __, ...jwk } = await subtle.exportKey("jwk", publicKey);
  const written = (part) => base64url(new TextEncoder().encode(typeof part === "string" ? part : JSON.stringify(part)));
  return {
    jwk: { ...jwk, kid, alg, use: "sig" },
    async token(claims, head = { alg, kid, typ: "JWT" }) {
      const covers = `${written(head)}.${written(claims)}`;
      return `${covers}.${base64url(await subtle.sign(by, privateKey, new TextEncoder().encode(covers)))}`;
    },
  };
}

const golden = process.env.GOLDEN ? JSON.parse(readFileSync(process.env.GOLDEN, "utf8")) : [];
test("claims are judged as programs judge them", () => {
  assert.ok(golden.length === 0 || golden.some(({ user }) => user) && golden.some(({ user }) => !user));
  for (const { claims, clients, terms, user, runtime } of golden) {
    let found = null;
    try {
      found = judged(claims, { keys: {}, clients }, terms);
    } catch {
      // It is refused.
    }
    assert.deepEqual([found?.user ?? null, found?.runtime ?? null], [user, runtime], JSON.stringify([claims, terms]));
  }
});

for (const alg of Object.keys(HOW)) {
  test(`a token signed by ${alg} is good with its key alone`, async () => {
    const [one, other] = await Promise.all([signer(alg), signer(alg)]);
    const claims = { sub: "alice", n: 1 };
    const token = await one.token(claims);
    const with_ = (...keys) => ({ keys });
    assert.deepEqual(await signedClaims(token, with_(other.jwk, one.jwk), KINDS), claims);
    const { kid: _, ...nameless } = { alg, kid: alg };
    assert.deepEqual(await signedClaims(await one.token(claims, nameless), with_(other.jwk, one.jwk), KINDS), claims);
    const refused = [
      [token, with_(other.jwk)], [token, with_()], [token, undefined], [token, { keys: "all" }],
      [token, with_({ ...one.jwk, kid: "another" })], [token, with_({ ...one.jwk, use: "enc" })],
      [token, with_({ ...one.jwk, alg: alg === "ES256" ? "ES384" : "ES256" })], [token, with_({ ...one.jwk, kty: "oct" })],
      [`${token}x`, with_(one.jwk)], [token.replace(/\.[^.]*\./, `.${base64url(new TextEncoder().encode('{"sub":"bob"}'))}.`), with_(one.jwk)],
      [`${token}.${token}`, with_(one.jwk)], [token.slice(0, token.lastIndexOf(".") + 1), with_(one.jwk)],
      ...(await Promise.all([
        one.token(claims, { alg: "none", kid: alg }), one.token(claims, { alg: "HS256", kid: alg }), one.token(claims, { kid: alg }),
        one.token(claims, { alg, kid: alg, jwk: one.jwk }), one.token(claims, { alg, kid: alg, crit: ["b64"] }),
        one.token(claims, { alg, kid: alg, typ: "protofly-statement+jwt" }), one.token(claims, { alg: "constructor", kid: alg }),
        one.token("[]"), one.token(7),
      ])).map((text) => [text, with_(one.jwk)]),
    ];
    for (const [at, [text, set]] of refused.entries()) {
      assert.equal(await signedClaims(text, set, KINDS).catch(() => null), null, `token ${at}`);
    }
  });
}

test("an RSA key of less than 2048 bits signs nothing, and one without alg verifies what it can", async () => {
  const small = await signer("RS256", "k", { ...RSA, modulusLength: 1024 });
  assert.equal(await signedClaims(await small.token({}), { keys: [small.jwk] }, KINDS), null);
  for (const alg of ["RS256", "PS256"]) {
    const large = await signer(alg);
    const { alg: _, ...plain } = large.jwk;
    assert.deepEqual(await signedClaims(await large.token({}), { keys: [plain] }, KINDS), {});
  }
});

test("a key that cannot be used does not keep the others of its set from serving", async () => {
  const own = await signer("ES256", "k");
  const { kid: _, ...nameless } = own.jwk;
  const bad = [
    7, { kty: "oct", k: "AAAA", kid: "k" }, { ...own.jwk, x: "AAAA" }, { ...own.jwk, y: 7 }, nameless,
    { ...own.jwk, key_ops: ["sign"] }, { kty: "AKP", kid: "k", alg: "ML-DSA-44" }, { ...own.jwk, crv: "P-384" },
  ];
  for (const head of [{ alg: "ES256", kid: "k" }, { alg: "ES256" }]) {
    const token = await own.token({ n: 1 }, head);
    assert.deepEqual(await signedClaims(token, { keys: [...bad, own.jwk] }, KINDS), { n: 1 });
    assert.equal(await signedClaims(token, { keys: bad }, KINDS), null);
  }
});

test("the key of an identity provider signs no token of another one", async () => {
  const OTHER = "https://idp.other.ex";
  const [own, other] = await Promise.all([signer("ES256", "a"), signer("ES256", "b")]);
  const now = Math.floor(Date.now() / 1000);
  const cnf = { jkt: "x".repeat(43) };
  const claims = { iss: ISSUER, sub: "alice", aud: "b.ex", iat: now, exp: now + 60, cnf };
  const good = await own.token(claims);
  const forged = await other.token(claims);
  const user = async (issuers, token) => (await asserted(issuers, token, "b.ex", cnf.jkt)).user;
  const shared = { keys: [{ ...own.jwk, iss: ISSUER }, { ...other.jwk, iss: OTHER }] };
  const bound = [
    { [ISSUER]: { keys: shared }, [OTHER]: { keys: shared } }, { [ISSUER]: { keys: shared } },
    { [ISSUER]: { keys: { keys: [own.jwk] } }, [OTHER]: { keys: { keys: [other.jwk] } } },
  ];
  for (const issuers of bound) {
    checkIssuers(issuers);
    assert.deepEqual([await user(issuers, good), await user(issuers, forged)], ["user://sso.a.ex/alice", undefined]);
  }
  const nobodys = { keys: [own.jwk, other.jwk] };
  for (const keys of [nobodys, { keys: [shared.keys[0], other.jwk] }, () => nobodys]) {
    const issuers = { [ISSUER]: { keys }, [OTHER]: { keys } };
    assert.throws(() => checkIssuers(issuers), /each its own keys/);
    assert.equal(await user(issuers, forged), undefined);
  }
});

/** A peer's offer, and what a page makes of it. */
async function met(claimsOf, { require = "identity-provider", keys, known = [ISSUER], stated, ...more } = {}) {
  const [provider, domain, key] = await Promise.all([signer("ES256"), signer("EdDSA"), openKey()]);
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: ISSUER, sub: "alice", aud: "b.ex", iat: now, exp: now + 60, cnf: { jkt: key.thumbprint }, runtime: PEER };
  const token = claimsOf && (await provider.token({ ...claims, ...claimsOf(key) }));
  const print = `sha-256 ${Array.from({ length: 32 }, () => "AB").join(":")}`;
  const sdp = ["v=0", "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", `a=fingerprint:${print}`, "a=setup:actpass", ""].join("\r\n");
  const bond = { signer: PEER, reader: OWN, object: "connection://b.ex/1", answers: "", negotiation: 1 };
  const owner = `${PEER}/p2prequester/1`;
  const said = { iss: "b.ex", sub: PEER, cnf: claims.cnf, iat: now, exp: now + 60, user: stated };
  const statement = stated && (await domain.token(said, { alg: "EdDSA", kid: "EdDSA", typ: "protofly-statement+jwt" }));
  const own = { key, said: { assertion: token, statement, domainKeys: null } };
  const security = await signed(own, bond, owner, sdp, print);
  const issuers = Object.fromEntries(known.map((name) => [name, { keys: keys ?? { keys: [provider.jwk] }, ...more }]));
  const identity = { key: await openKey(), said: { domainKeys: { keys: [domain.jwk] } }, domain: "b.ex", require, issuers };
  const { standing } = await verified(identity, { owner, security, connectionDescription: { type: "offer", sdp } }, bond);
  return typeof standing === "string" ? standing : standing.identity;
}

test("a page opens links to those for whom a provider vouches that it believes, by name of runtime and key", async () => {
  assert.deepEqual(await met(() => ({})), { runtime: PEER, user: "user://sso.a.ex/alice", vouchedBy: "identity-provider" });
  const refused = [
    [null, {}], [() => ({ runtime: undefined }), {}], [() => ({ runtime: OWN }), {}], [() => ({ cnf: undefined }), {}],
    [() => ({ cnf: { jkt: "x".repeat(43) } }), {}], [() => ({ aud: "c.ex" }), {}], [() => ({}), { known: [] }],
    [() => ({}), { known: ["https://other.ex"] }], [() => ({ iss: "constructor" }), {}], [() => ({ iss: "__proto__" }), {}],
    [() => ({}), { keys: { keys: [] } }], [() => ({}), { keys: () => Promise.reject(new Error("away")) }], [() => ({ exp: 1 }), {}],
    [() => ({ azp: "app" }), {}], [() => ({ sub: "user://b.ex/alice" }), { known: [ISSUER, "https://other.ex"] }],
  ];
  for (const [at, [claims, terms]] of refused.entries()) {
    assert.match(String(await met(claims, terms)), /^an identity provider has to vouch for the peer: /, `peer ${at}`);
    // It is as if nothing had been shown.
    assert.deepEqual(await met(claims, { ...terms, require: "none" }), { runtime: PEER, user: null, vouchedBy: "none" });
    assert.match(String(await met(claims, { ...terms, require: "domain" })), /^its domain has to vouch for the peer: /);
  }
  assert.equal((await met(() => ({ azp: "app" }), { clients: ["app"] })).vouchedBy, "identity-provider");
  assert.equal((await met(() => ({ aud: "us" }), { audience: ["us"], require: "domain" })).vouchedBy, "identity-provider");
});

test("what a domain and an identity provider say of one peer must not differ", async () => {
  const alice = "user://sso.a.ex/alice";
  assert.equal((await met(null, { stated: "user://b.ex/bob", require: "domain" })).user, "user://b.ex/bob");
  assert.deepEqual(await met(() => ({}), { stated: alice }), { runtime: PEER, user: alice, vouchedBy: "identity-provider" });
  for (const require of ["identity-provider", "domain", "none"]) {
    const why = await met(() => ({}), { stated: "user://b.ex/bob", require });
    assert.equal(why, "its domain and its identity provider name different users");
  }
});

test("keys may be got each time that a token is shown", async () => {
  const provider = await signer("ES256");
  const now = Math.floor(Date.now() / 1000);
  const cnf = { jkt: "x".repeat(43) };
  const token = await provider.token({ iss: ISSUER, sub: "alice", aud: "b.ex", iat: now, exp: now + 60, cnf });
  const keys = async () => ({ keys: [provider.jwk] });
  const { user, runtime } = await asserted({ [ISSUER]: { keys } }, token, "b.ex", cnf.jkt);
  assert.deepEqual([user, runtime], ["user://sso.a.ex/alice", null]);
});
