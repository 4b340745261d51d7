// Offers of direct links that are forged, replayed or malformed; run in the page of an attacker.

const encoder = new TextEncoder();
const hash = async (content) => {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((one) => one.toString(16).padStart(2, "0")).join("");
};

/** The signature of `security`, as docs/p2p.md says. */
async function sign(key, { purpose, signer, reader, owner, object, answers, negotiation, sdp, fingerprint }) {
  const nothing = await hash("");
  const parts = [signer, reader, owner, object, answers, negotiation, nothing, nothing, nothing];
  return key.sign(purpose, [...parts, await hash(sdp), fingerprint]);
}

const lines = (change) => (offer) => ({ ...offer, sdp: change(offer.sdp.split("\r\n")).join("\r\n") });
const without = (start) => lines((all) => all.filter((one) => !one.startsWith(start)));
const instead = (start, text) => lines((all) => all.map((one) => (one.startsWith(start) ? text : one)));
const after = (start, ...more) => lines((all) => all.flatMap((one) => (one.startsWith(start) ? [one, ...more] : [one])));
const other = (text, at) => text.slice(0, at) + (text[at] === "0" ? "1" : "0") + text.slice(at + 1);
const set = (change) => (offer) => ({ ...offer, ...change });

/** What is changed before it is signed: the key is the attacker's own, the offer is no good. */
const SIGNED = [
  ...[8, 20, 50, 101].map((at) => (offer) => ({ ...offer, fingerprint: other(offer.fingerprint, at) })),
  (offer) => ({ ...offer, fingerprint: offer.fingerprint.toLowerCase().replace("sha-256", "sha-1") }),
  set({ fingerprint: "" }),
  set({ fingerprint: "sha-256 00" }),
  (offer) => ({ ...offer, fingerprint: `${offer.fingerprint}:00` }),
  without("a=fingerprint"),
  (offer) => after("a=fingerprint", other(`a=fingerprint:${offer.fingerprint}`, 30))(offer),
  (offer) => instead("a=fingerprint", other(`a=fingerprint:${offer.fingerprint}`, 60))(offer),
  without("m="),
  after("a=mid", "m=application 9 UDP/DTLS/SCTP webrtc-datachannel"),
  after("a=mid", "m=audio 9 UDP/TLS/RTP/SAVPF 111"),
  instead("m=", "m=audio 9 UDP/TLS/RTP/SAVPF 111"),
  instead("m=", "m=application 9 UDP/DTLS/SCTP webrtc-datachannel x"),
  instead("a=setup", "a=setup:active"),
  instead("a=setup", "a=setup:holdconn"),
  after("a=setup", "a=setup:passive"),
  without("a=setup"),
  without("a=ice-ufrag"),
  without("a=ice-pwd"),
  without("a=mid"),
  instead("a=ice-ufrag", `a=ice-ufrag:${"u".repeat(300)}`),
  instead("a=ice-pwd", "a=ice-pwd:short"),
  after("a=mid", `a=x:${"x".repeat(9000)}`),
  set({ sdp: "" }),
  set({ sdp: "v=0" }),
  set({ sdp: "\u0000\ud7ff" }),
  set({ sdp: "{}" }),
  lines((all) => all.map((one) => one.replace("v=0", "v=9"))),
  lines((all) => [...all].reverse()),
  set({ owner: "hyperty-runtime://a.example/victim/p2prequester/1" }),
  set({ owner: "nobody" }),
];

/** What is signed is another bond: the signature was made for something else. */
const REPLAYED = [
  set({ purpose: "p2p-answer" }),
  set({ purpose: "open" }),
  set({ purpose: "p2p-ice" }),
  set({ signer: "hyperty-runtime://a.example/somebody" }),
  set({ reader: "hyperty-runtime://a.example/somebody" }),
  set({ reader: "" }),
  set({ object: "connection://a.example/another" }),
  set({ answers: "connection://a.example/another" }),
  set({ negotiation: "2" }),
  set({ negotiation: "0" }),
  (offer) => ({ ...offer, sdp: `${offer.sdp}a=x:1\r\n` }),
  (offer) => ({ ...offer, fingerprint: other(offer.fingerprint, 9) }),
];

/** What is changed after it was signed. */
const FORGED = [
  (security) => ({ ...security, signature: other(security.signature, 3) }),
  (security) => ({ ...security, signature: "" }),
  (security) => ({ ...security, signature: security.signature.slice(0, 40) }),
  (security) => ({ ...security, signature: `${security.signature}AAAA` }),
  (security) => ({ ...security, signature: "%%%" }),
  (security) => ({ ...security, signature: 7 }),
  (security) => ({ ...security, publicKey: other(security.publicKey, 5) }),
  (security) => ({ ...security, publicKey: "" }),
  (security) => ({ ...security, publicKey: "AAAA" }),
  (security) => ({ ...security, publicKey: { x: security.publicKey } }),
  (security) => ({ ...security, statement: "a.b.c" }),
  (security) => ({ ...security, assertion: "x".repeat(5000) }),
  (security) => ({ ...security, certificate: "AAAA" }),
  (security) => ({ ...security, fingerprint: ["sha-256"] }),
  () => ({}),
  () => [],
  () => "signed",
  () => 1,
];

export const ATTACKS = [
  ...SIGNED.map((mutate) => ({ mutate, isSigned: true })),
  ...REPLAYED.map((mutate) => ({ mutate, isSigned: false })),
  ...FORGED.map((forge) => ({ forge })),
];

/** Offer a link; return "answered" if the victim makes an answer, or else "refused". */
export async function offerLink(runtime, victim, handler, number, { mutate, isSigned, forge } = {}) {
  await runtime.sync();
  const begun = performance.now();
  const [scheme, , domain] = runtime.url.split("/");
  const stub = `${runtime.url}/p2prequester/${number}`;
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  const port = runtime.part(`p2prequester/${number}`, (message) => {
    if (message.type === "create") end("answered");
  });
  const schema = `hyperty-catalogue://catalogue.${domain}/.well-known/dataschema/Connection`;
  const sm = `${runtime.url}/sm`;
  const data = { owner: stub, status: "", connectionDescription: { type: "offer" }, candidates: [], iceCandidates: [] };
  await port.ask("subscribe", `domain://msg-node.${domain}/sm`, { resources: [stub], source: stub });
  const value = { reporter: stub, data, runtime: runtime.url, name: "P2PConnection", resources: ["data"] };
  const { resource: object } = (await port.ask("create", sm, { value, schema, p2p: false })).body;
  const stop = runtime.trace.listen(({ machine, key, new: entered }) => {
    const isOver = entered === "removed" || entered === "refused";
    if (machine === "object_subscription" && isOver && key.startsWith(object)) end("refused");
  });
  const connection = new RTCPeerConnection();
  connection.createDataChannel("protofly", { negotiated: true, id: 0, protocol: "protofly.v1" });
  const { sdp } = await connection.createOffer();
  const fingerprint = `sha-256 ${/a=fingerprint:sha-256 (\S+)/.exec(sdp)[1]}`;
  const offer = { purpose: "p2p-offer", signer: runtime.url, reader: victim, owner: stub, object, answers: "",
    negotiation: "1", sdp, fingerprint };
  const changed = mutate ? mutate(offer) : offer;
  const shown = isSigned ? changed : offer;
  const security = { publicKey: runtime.key.public, fingerprint: shown.fingerprint, signature: await sign(runtime.key, changed) };
  const change = (attribute, value) => port.ask("update", sm, { resource: object, attribute, value });
  if (shown.owner !== stub) await change("owner", shown.owner);
  await change("connectionDescription", { type: "offer", sdp: shown.sdp });
  await change("security", forge ? forge(security) : security);
  const invited = await port.ask("create", sm, { resource: object, schema, authorise: [handler],
    value: { runtime: runtime.url, reporter: stub } });
  const result = invited.body.code >= 300 ? `refused ${invited.body.code}` : await ended;
  stop();
  window.took = [...(window.took ?? []), [number, Math.round(performance.now() - begun), result]];
  await port.ask("delete", sm, { resource: object });
  connection.close();
  return result;
}
