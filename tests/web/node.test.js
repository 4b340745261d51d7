// The runtime with a node that is slow, forgets, refuses, or means harm.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openKey, openRuntime, RefusedError } from "../../web/src/index.js";
import { FakeNode, PEER, request, RUNTIME, SESSION, settle, STUB } from "./fake_node.js";

async function opened(more = {}, node = new FakeNode()) {
  // Without a key, as WebCrypto works in a thread, which no clock of ours turns.
  const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", trace: true, key: null };
  const opening = openRuntime({ ...options, connect: node.connect, clock: node.clock, ...more });
  opening.catch(() => {});
  await settle();
  return { node, opening };
}

async function echoing(more) {
  const { node, opening } = await opened(more);
  const runtime = await opening;
  const asked = [];
  const code = { request: (message) => (asked.push(message), message.body.value) };
  const deploying = runtime.deploy("echo", code);
  await settle();
  const echo = await deploying;
  return { node, runtime, echo, asked };
}

const drops = (runtime) => Object.fromEntries(runtime.counters.drops);
const steps = (runtime, machine) =>
  runtime.trace.text().trim().split("\n").map((line) => JSON.parse(line))
    .filter((one) => one.k === "state" && one.machine === machine)
    .map((one) => one.new);

test("a session is opened with the key shown and proven, then re-opened by its token", async () => {
  const { node, opening } = await opened({ key: undefined }, Object.assign(new FakeNode(), {
    control: ({ body: { method, params } }) => {
      if (method === "ping") return { code: 200 };
      if (!params.proof) return { code: 401, value: { challenge: "sign this" } };
      return { code: 200, value: { sessionToken: "secret" } };
    },
  }));
  const runtime = await opening;
  node.cut();
  await node.clock.turn(0.1);
  while (runtime.state !== "live") await new Promise((next) => setTimeout(next, 1));
  assert.deepEqual(
    node.controls.map(({ method, params }) => [method, Boolean(params.key), Boolean(params.proof), params.token]),
    [
      ["open", true, false, undefined], ["open", true, true, undefined],
      ["re-open", true, false, "secret"], ["re-open", true, true, "secret"],
    ],
  );
  assert.ok(!runtime.trace.text().includes("secret"));
});

test("a login gets a token for each open, and none for a re-open", async () => {
  let tokens = 0;
  const { node, opening } = await opened({ token: () => `login-${(tokens += 1)}` });
  await opening;
  node.cut();
  await node.clock.turn(1);
  node.control = ({ body: { method } }) =>
    method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } };
  node.cut();
  await node.clock.turn(1);
  const shown = node.controls.filter(({ method }) => method !== "ping").map(({ method, params }) => [method, params.token]);
  assert.deepEqual(shown, [["open", "login-1"], ["re-open", "token-1"], ["re-open", "token-2"], ["open", "login-2"]]);
});

/** Open a runtime, lose its link, and answer its controls from then on. */
async function refusedLater(control, more = {}) {
  const ends = [];
  const { node, opening } = await opened({ token: () => "t", onEnd: (why) => ends.push(why), ...more });
  const runtime = await opening;
  Object.assign(node, { control });
  node.cut();
  await node.clock.turn(300);
  return { node, runtime, ends };
}

const logins = (node) => node.controls.filter(({ method }) => method === "open").length;

test("a session that another login has taken over is over for good", async () => {
  const taken = "taken over by another login";
  const { node, runtime, ends } = await refusedLater(() => ({ code: 409, description: taken }));
  assert.deepEqual([runtime.state, runtime.endReason, ends], ["failed", taken, [taken]]);
  assert.deepEqual([logins(node), node.sockets.length], [1, 2]);
  const asking = runtime.deploy("echo", {});
  asking.catch(() => {});
  await node.clock.turn(60);
  await assert.rejects(asking, (error) => error.code === 409 && error.reason === taken);
  assert.deepEqual([logins(node), node.sockets.length], [1, 2]);
  assert.deepEqual(steps(runtime, "stub_connection"), ["created", "in-progress", "live", "disconnected", "failed"]);
  await runtime.close();
});

test("a page that is loaded again logs in where another login has its former session", async () => {
  const node = new FakeNode();
  const usual = node.control;
  node.control = (message) =>
    message.body.method === "re-open" ? { code: 409, description: "taken over by another login" } : usual(message);
  const { opening } = await opened({ token: () => "t", session: "former" }, node);
  assert.equal((await opening).state, "live");
});

test("a login that cannot succeed any more ends the session for good, others are made again", async () => {
  let tokens = 0;
  const forgotten = (code, more = {}) => ({ body: { method } }) =>
    method === "re-open" ? { code: 410 } : { code, description: "no", ...more };
  for (const [token, code, isOver, open, more] of [
    [() => `t${(tokens += 1)}`, 409, true, 2], [() => `t${(tokens += 1)}`, 403, true, 2],
    [() => `t${(tokens += 1)}`, 401, true, null], ["one", 401, true, 2], [() => "same", 401, false, 2],
    [() => `t${(tokens += 1)}`, 503, false, 2], [() => `t${(tokens += 1)}`, 401, false, 6, { retryAfter: 60 }],
    ["one", 401, false, 2, { retryAfter: 60 }],
  ]) {
    const { node, runtime, ends } = await refusedLater(forgotten(code, more), { token });
    assert.deepEqual([runtime.state === "failed", ends], [isOver, isOver ? ["no"] : []], `${code}`);
    const made = logins(node);
    assert.ok(isOver && open ? made === open : made > (open ?? 6), `${code}: ${made} logins`);
  }
});

test("peers are shown the token of a login if it is bound to the key, and no other", async () => {
  const pair = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  const { thumbprint } = await openKey(pair);
  const token = (claims) => `e30.${btoa(JSON.stringify(claims))}.c2ln`;
  for (const [claims, isShown] of [
    [{ cnf: { jkt: thumbprint } }, true], [{ cnf: { jkt: "another" } }, false], [{}, false], [null, false], [[], false],
  ]) {
    const shown = token(claims);
    const node = new FakeNode();
    const opening = openRuntime({ domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: pair, token: shown, connect: node.connect, clock: node.clock });
    while (!node.controls.length) await new Promise((next) => setTimeout(next, 1));
    const runtime = await opening;
    assert.equal(node.controls[0].params.token, shown);
    assert.equal(runtime.said.assertion, isShown ? shown : null);
  }
});

test("a node that refuses says why", async () => {
  const node = Object.assign(new FakeNode(), { control: () => ({ code: 403, description: "not you" }) });
  const { opening } = await opened({ token: "t" }, node);
  await settle();
  await node.clock.turn(3);
  await assert.rejects(opening, (error) => error instanceof RefusedError && error.code === 403 && /not you/.test(error.reason));
  assert.equal(node.sockets.length, 1);
});

test("a token that cannot be got is said", async () => {
  const { node, opening } = await opened({ token: () => Promise.reject(new Error("offline")) });
  await node.clock.turn(10);
  await assert.rejects(opening, /no token for the login: offline/);
});

test("a node that cannot be reached is given up after three seconds", async () => {
  const node = Object.assign(new FakeNode(), { accepts: false });
  const { opening } = await opened({}, node);
  await node.clock.turn(10);
  await assert.rejects(opening, (error) => error.code === 503);
  assert.ok(node.sockets.length > 2);
});

test("a node that opens no session in time is dialled again", async () => {
  const node = Object.assign(new FakeNode(), { control: () => null });
  const { opening } = await opened({}, node);
  await node.clock.turn(10);
  await assert.rejects(opening, /no session in time/);
});

test("a silent node is pinged, then lost, and a ping that it answers keeps the link", async () => {
  const { node, runtime } = await echoing();
  await node.clock.turn(25);
  assert.equal(node.controls.at(-1).method, "ping");
  assert.equal(node.sockets.length, 1);
  node.control = ({ body: { method } }) => (method === "ping" ? null : { code: 200, value: { sessionToken: "t" } });
  await node.clock.turn(40);
  assert.equal(node.sockets.length, 2);
  assert.ok(steps(runtime, "node_link").includes("paused"));
});

test("a node that has forgotten the session gets addresses and records again", async () => {
  const { node, echo } = await echoing();
  node.control = ({ body: { method } }) =>
    method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "other" } };
  const before = node.messages.length;
  node.cut();
  await node.clock.turn(1);
  const after = node.messages.slice(before).filter(({ to }) => to !== SESSION);
  assert.deepEqual(after.map(({ type, to }) => [type, to]), [
    ["subscribe", "domain://msg-node.a.ex/sm"], ["create", "domain://registry.a.ex"],
  ]);
  assert.deepEqual(after[0].body.resources, [echo.url]);
  assert.equal(after[1].body.value.url, echo.url);
});

test("a record is kept alive, and registered anew when the registry has forgotten it", async () => {
  const { node, echo } = await echoing();
  node.answers = ({ to, type }) =>
    to === "domain://registry.a.ex" && type === "update" ? { code: 404 } : undefined;
  await node.clock.turn(1700);
  const kept = node.said({ to: "domain://registry.a.ex" }).filter(({ type }) => type !== "read");
  const said = kept.map(({ type, body }) => [type, body.resource ?? body.value.url]);
  assert.deepEqual(said, [["create", echo.url], ["update", echo.url], ["create", echo.url]]);
});

test("who is not registered any more is not listened to any more", async () => {
  const { runtime, echo } = await echoing();
  const status = `${echo.url}/status`;
  assert.ok(runtime.bus.isListenedTo(status));
  const closing = echo.close();
  await settle();
  await closing;
  assert.equal(runtime.bus.isListenedTo(status), false);
});

test("a hyperty gets the address back that it had before a reload", async () => {
  const record = { runtime: RUNTIME, status: "live", name: "echo" };
  const found = [
    { ...record, url: "hyperty://a.ex/lost" }, { ...record, url: "hyperty://a.ex/former" },
    { ...record, url: "hyperty://a.ex/theirs", user: "user://a.ex/other" },
    { ...record, url: "hyperty://a.ex/elsewhere", runtime: "hyperty-runtime://a.ex/other" },
  ];
  const node = Object.assign(new FakeNode(), {
    answers({ type, body: { resource, resources = [] } }) {
      if (type === "read" && resource === `/hyperty/runtime/${RUNTIME}`) return { code: 200, value: found };
      return resources[0] === "hyperty://a.ex/lost" ? { code: 403 } : undefined;
    },
  });
  const { opening } = await opened({}, node);
  const runtime = await opening;
  const deploying = [runtime.deploy("echo", {}), runtime.deploy("echo", {})];
  await settle();
  const urls = (await Promise.all(deploying)).map(({ url }) => url);
  assert.deepEqual(urls.sort(), ["hyperty://a.ex/former", "hyperty://a.ex/own-1"]);
});

test("a hyperty that comes after one that rests has its address, and ids that no peer has seen", async () => {
  const { node, runtime, echo } = await echoing();
  const asked = () => node.said({ from: echo.url, to: PEER }).map(({ id }) => id);
  echo.send(PEER, 1);
  const resting = echo.rest();
  await settle();
  await resting;
  assert.deepEqual(node.said({ type: "delete", to: "domain://msg-node.a.ex/address-allocation" }), []);
  const deploying = [runtime.deploy("other", {}), runtime.deploy("echo", {}, { address: echo.url })];
  await settle();
  const [other, again] = await Promise.all(deploying);
  assert.deepEqual([other.url === echo.url, again.url], [false, echo.url]);
  void again.request(PEER, 2);
  await settle();
  const [first, second] = [node.said({ from: echo.url, to: `${PEER}/events` })[0].id, asked()[0]];
  assert.ok(first < second);
  await assert.rejects(runtime.deploy("echo", {}, { address: echo.url }), RangeError);
});

test("an address that another session has got meanwhile is not had again", async () => {
  const { node, runtime, echo } = await echoing();
  const resting = echo.rest();
  await settle();
  await resting;
  node.answers = ({ body: { resources = [] } }) => (resources[0] === echo.url ? { code: 403 } : undefined);
  const deploying = runtime.deploy("echo", {});
  await settle();
  assert.notEqual((await deploying).url, echo.url);
});

test("a record is followed until the last follower leaves, also when the node has forgotten that", async () => {
  const { node, runtime } = await echoing();
  const path = `${PEER}/registration`;
  const said = (type) => node.said({ type, to: "domain://msg-node.a.ex/sm" }).filter(({ body }) => body.resources[0] === path);
  let status = "disconnected";
  node.answers = ({ type, to, body }) => {
    if (type !== "read" || to !== "domain://registry.a.ex" || body.resource !== PEER) return undefined;
    return status === null ? { code: 404 } : { code: 408, value: [{ url: PEER, status }] };
  };
  const heard = [[], []];
  const following = heard.map((one) => runtime.follow(PEER, (value) => one.push(value)));
  await settle();
  const ends = await Promise.all(following);
  const report = { id: 1, type: "update", from: "domain://registry.a.ex", to: path };
  node.say({ ...report, body: { attribute: "status", value: "live" } });
  node.say({ ...report, id: 2, from: PEER, body: { attribute: "status", value: "forged" } });
  node.say({ ...report, id: 3, body: { attribute: "status", value: 3 } });
  await settle();
  assert.deepEqual(heard, [["disconnected", "live"], ["disconnected", "live"]]);
  assert.deepEqual(drops(runtime), { "forged-status": 1, malformed: 1 });
  await ends[0]();
  status = null;
  node.control = ({ body: { method } }) =>
    method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "other" } };
  const before = said("subscribe").length;
  // At first, it takes nothing either.
  const { answers } = node;
  node.answers = (message) => (message.body.resources?.[0] === path ? { code: 503 } : answers(message));
  node.cut();
  await node.clock.turn(1);
  node.answers = answers;
  await node.clock.turn(6);
  assert.equal(said("subscribe").length, before + 2);
  assert.deepEqual(heard, [["disconnected", "live"], ["disconnected", "live", null]]);
  assert.equal(said("unsubscribe").length, 0);
  void ends[1]();
  await settle();
  assert.equal(said("unsubscribe").length, 1);
});

test("a record that may not be followed is said", async () => {
  const { node, runtime } = await echoing();
  node.answers = ({ body: { resources } }) => (resources ? { code: 403, description: "no" } : undefined);
  const following = runtime.follow(PEER, () => assert.fail());
  const refused = assert.rejects(following, { name: "RefusedError", code: 403 });
  await settle();
  await refused;
});

test("messages of one turn leave in one frame, no more than 64 in each", async () => {
  const { node, echo } = await echoing();
  const before = node.frames.length;
  for (let at = 0; at < 150; at += 1) echo.send(PEER, at);
  await settle();
  assert.deepEqual(node.frames.slice(before).map((frame) => frame.split("\n").length), [64, 64, 22]);
});

test("messages above the rate of the node wait, and leave in order", async () => {
  const control = ({ body: { method } }) =>
    method === "ping" ? { code: 200 } : { code: 200, value: { sessionToken: "t", rate: 100, burst: 20 } };
  const { node, opening } = await opened({}, Object.assign(new FakeNode(), { control }));
  const runtime = await opening;
  const deploying = runtime.deploy("echo", {});
  await node.clock.turn(1);
  const echo = await deploying;
  const sent = () => node.said({ to: `${PEER}/events` }).map(({ body }) => body.value);
  for (let at = 0; at < 100; at += 1) echo.send(PEER, at);
  await settle();
  const first = sent().length;
  assert.ok(first >= 15 && first <= 20, String(first));
  await node.clock.turn(0.5);
  assert.ok(sent().length < 75, String(sent().length));
  await node.clock.turn(1);
  assert.deepEqual(sent(), [...Array(100).keys()]);
});

test("a rate of nothing is none, and the smallest one is a message each second", async () => {
  for (const [rate, seconds, least] of [[0, 0, 20], [-1, 0, 20], [1e-320, 8, 10]]) {
    const control = () => ({ code: 200, value: { sessionToken: "t", rate, burst: 5 } });
    const { node, opening } = await opened({}, Object.assign(new FakeNode(), { control }));
    await node.clock.turn(20);
    const deploying = (await opening).deploy("echo", {});
    await node.clock.turn(20);
    const echo = await deploying;
    for (let at = 0; at < 20; at += 1) echo.send(PEER, at);
    await node.clock.turn(seconds);
    const sent = node.said({ to: `${PEER}/events` }).length;
    assert.ok(sent >= least && (least === 20 || sent < 20), `${rate}: ${sent}`);
  }
});

test("a link that does not drain holds messages back, and a full queue refuses", async () => {
  const { node, runtime, echo } = await echoing();
  node.socket.bufferedAmount = 2 ** 21;
  const before = node.messages.length;
  const asked = Array.from({ length: 1500 }, () => echo.ask("read", PEER, {}));
  await settle();
  assert.equal(node.messages.length, before);
  const refused = (await Promise.all(asked.slice(1000))).map(({ body }) => [body.code, body.retryAfter]);
  assert.deepEqual(refused[0], [503, 1]);
  assert.equal(refused.length, 500);
  node.socket.bufferedAmount = 0;
  await node.clock.turn(0.1);
  assert.equal(node.said({ to: PEER }).length, 1000);
  assert.equal(runtime.state, "live");
});

test("what is no text, or too large, ends the link", async () => {
  const { node, runtime } = await echoing();
  for (const [at, bad] of [new ArrayBuffer(8), "x".repeat(300_000), "€".repeat(100_000)].entries()) {
    node.say(bad);
    await node.clock.turn(20);
    assert.equal(node.sockets.length, at + 2);
    assert.equal(runtime.state, "live");
  }
  assert.deepEqual(drops(runtime), { malformed: 3 });
});

test("malformed lines are counted, and refused where they name a sender; the eleventh ends the link", async () => {
  const { node, runtime, echo } = await echoing();
  const good = JSON.stringify(request(echo.url, 1));
  node.say(`{\n\n[]\n7\n${good}\n{"id":1,"type":"nothing","from":"${PEER}","to":"${echo.url}"}`);
  await settle();
  assert.deepEqual(drops(runtime), { malformed: 4 });
  const answers = node.said({ type: "response", to: PEER }).map(({ id, body }) => [id, body.code]);
  assert.deepEqual(answers, [[1, 400], [7, 200]]);
  for (let at = 0; at < 6; at += 1) node.say("{");
  assert.equal(node.sockets.length, 1);
  node.say("{\n{\n{");
  await node.clock.turn(20);
  assert.equal(node.sockets.length, 2);
  assert.deepEqual(drops(runtime), { malformed: 11 });
});

test("a malformed answer ends the request at once, a malformed provisional one does not", async () => {
  const { node, runtime, echo } = await echoing();
  const codes = [];
  for (const value of [1, 2]) void echo.request(PEER, value).catch(({ code, reason }) => codes.push([value, code, /malformed/.test(reason)]));
  await settle();
  const [first, second] = node.said({ to: PEER });
  const line = ({ id }, code) => `{"id":${id},"type":"response","from":"${PEER}","to":"${echo.url}","body":{"code":${code},"value":NaN}}`;
  node.say(`${line(first, 200)}\n${line(second, 183)}`);
  await settle();
  assert.deepEqual(codes, [[1, 502, true]]);
  assert.deepEqual(drops(runtime), { malformed: 2 });
});

test("an answer that no line can hold is not sent, and its receiver hears so", async () => {
  const policy = ({ from }) => (from === PEER ? "half a character: \ud83d" : null);
  const { node, runtime, echo } = await echoing({ policy });
  node.say(request(echo.url, 1, { id: 7 }));
  await settle();
  assert.deepEqual(node.said({ type: "response", to: PEER }).map(({ id, body }) => [id, body.code]), [[7, 502]]);
  assert.deepEqual(drops(runtime), { denied: 1, malformed: 1 });
});

test("more messages in a frame than there may be are one malformed line", async () => {
  const { node, runtime, echo, asked } = await echoing();
  const lines = Array.from({ length: 80 }, (_, at) => JSON.stringify(request(echo.url, at, { id: at + 1 })));
  node.say(lines.join("\n"));
  await settle();
  assert.equal(asked.length, 64);
  assert.deepEqual(drops(runtime), { malformed: 1 });
});

test("answers that nobody has asked for are dropped", async () => {
  const { node, runtime, echo } = await echoing();
  const answer = { id: 99, type: "response", from: PEER, to: echo.url, body: { code: 200 } };
  node.say(answer);
  node.say({ ...answer, from: SESSION, to: STUB });
  node.say({ ...answer, to: `${RUNTIME}/registry`, from: "domain://registry.a.ex" });
  await settle();
  assert.deepEqual(drops(runtime), { unmatched: 3 });
});

test("a request whose answer is late was answered 408", async () => {
  const { node, runtime, echo } = await echoing();
  const asking = echo.ask("read", PEER, {});
  await node.clock.turn(15.1);
  assert.equal((await asking).body.code, 408);
  const { id } = node.said({ to: PEER })[0];
  node.say({ id, type: "response", from: PEER, to: echo.url, body: { code: 200 } });
  await settle();
  assert.deepEqual(drops(runtime), { "late-response": 1 });
});

test("a provisional answer prolongs the wait", async () => {
  const { node, echo } = await echoing();
  const heard = [];
  const asking = echo.request(PEER, 1, { provisional: ({ body }) => heard.push(body.code) });
  await node.clock.turn(10);
  const { id } = node.said({ to: PEER })[0];
  const answer = { id, type: "response", from: PEER, to: echo.url };
  node.say({ ...answer, body: { code: 100 } });
  await node.clock.turn(10);
  node.say({ ...answer, body: { code: 200, value: "late, but here" } });
  await settle();
  assert.equal(await asking, "late, but here");
  assert.deepEqual(heard, [100]);
});

test("a node cannot send from an address of this runtime, nor what went round", async () => {
  const { node, runtime, echo, asked } = await echoing();
  for (const from of [echo.url, RUNTIME, `${RUNTIME}/registry`, STUB]) node.say(request(echo.url, 1, { from, type: "execute" }));
  node.say({ id: 3, type: "update", from: STUB, to: `${STUB}/status`, body: { value: "failed" } });
  node.say(request(`${STUB}/status`, "failed", { type: "update" }));
  node.say(request(echo.url, 1, { body: { via: [STUB] } }));
  node.say(request(echo.url, 1, { body: { via: [PEER, PEER] } }));
  await settle();
  assert.deepEqual(asked, []);
  assert.deepEqual(drops(runtime), { "unknown-source": 5, "forged-status": 1, loop: 2 });
  assert.equal(runtime.state, "live");
});

test("nobody outside commands the stub of the node, nor does a hyperty here", async () => {
  const { node, runtime, echo } = await echoing();
  for (const type of ["execute", "create", "subscribe"]) {
    node.say(request(STUB, 0, { id: node.messages.length + 100, type, body: { method: "disconnect" } }));
    await settle();
    assert.equal(node.said({ type: "response", to: PEER }).at(-1).body.code, 403, type);
  }
  assert.equal((await echo.ask("execute", STUB, { method: "disconnect" })).body.code, 403);
  // The node itself does not speak as a part of the runtime.
  node.say(request(STUB, 0, { from: `${RUNTIME}/ua`, type: "execute", body: { method: "disconnect" } }));
  await settle();
  assert.equal(runtime.state, "live");
  assert.equal(node.controls.some(({ method }) => method === "close"), false);
  await runtime.close();
  assert.equal(node.controls.at(-1).method, "close");
});

test("a peer whose requests do not end keeps no other from a hyperty", async () => {
  const { node, opening } = await opened();
  const runtime = await opening;
  const hang = { request: ({ body }) => (body.value === "hang" ? new Promise(() => {}) : body.value) };
  const deploying = runtime.deploy("slow", hang);
  await settle();
  const { url } = await deploying;
  const identity = { user: null, runtime: "hyperty-runtime://a.ex/attacker", vouchedBy: "none" };
  for (let id = 1; id <= 2000; id += 1) {
    const from = `${PEER}-${id % 20}`;
    node.say(request(url, "hang", { id, from, body: { value: "hang", identity } }));
    if (id % 50 === 0) await settle();
  }
  assert.ok(node.said({ type: "response" }).some(({ to, body }) => to !== PEER && body.code === 503));
  node.say(request(url, "hello", { body: { value: "hello", identity: { ...identity, runtime: RUNTIME + "x" } } }));
  await settle();
  assert.equal(node.said({ type: "response", to: PEER }).at(-1).body.value, "hello");
});

test("a hyperty is told who sends, here and elsewhere, and not by the sender", async () => {
  const own = { runtime: RUNTIME, user: "user://a.ex/alice", vouchedBy: "identity-provider" };
  const theirs = { runtime: "hyperty-runtime://a.ex/rb", user: null, vouchedBy: "none" };
  const control = ({ body: { method } }) =>
    method === "ping" ? { code: 200 } : { code: 200, value: { sessionToken: "t", identity: own } };
  const { node, opening } = await opened({}, Object.assign(new FakeNode(), { control }));
  const runtime = await opening;
  const asked = [];
  const deploying = runtime.deploy("echo", { request: (message) => void asked.push(message) });
  await settle();
  const echo = await deploying;
  void echo.ask("create", echo.url, { value: 1, identity: theirs });
  const { user: _, ...said } = theirs;
  node.say(request(echo.url, 1, { body: { value: 2, identity: said } }));
  await settle();
  assert.deepEqual(asked.map(({ identity }) => identity), [own, theirs]);
  assert.deepEqual(asked.map(({ body }) => "identity" in body), [false, false]);
  void echo.ask("create", PEER, { value: 3 });
  await settle();
  assert.ok(!JSON.stringify(node.said({ to: PEER, type: "create" })).includes("alice"));
});

test("a request that comes twice is handled once, and answered twice", async () => {
  const { node, runtime, echo, asked } = await echoing();
  for (let at = 0; at < 2; at += 1) {
    node.say(request(echo.url, 5));
    await settle();
  }
  node.say(request(echo.url, 6));
  await settle();
  assert.equal(asked.length, 1);
  const answers = node.said({ type: "response", to: PEER }).map(({ body }) => body.code);
  assert.deepEqual(answers, [200, 200, 400]);
  assert.deepEqual(drops(runtime), { duplicate: 2 });
});

test("what is for nobody here is answered 404, and goes nowhere else", async () => {
  const { node, echo } = await echoing();
  node.say(request("hyperty://a.ex/gone", 1));
  node.say(request(`${RUNTIME}/nothing`, 1, { id: 8 }));
  await settle();
  assert.deepEqual(node.said({ type: "response", to: PEER }).map(({ body }) => body.code), [404, 404]);
  assert.equal(node.said({ to: echo.url }).length, 0);
});

test("a hyperty that fails answers 500, one that refuses its code, and both live on", async () => {
  const { node, runtime } = await echoing();
  const codes = [];
  const failing = runtime.deploy("failing", {
    request({ body: { value } }) {
      if (value === 0) throw new Error("no");
      if (value === 1) throw Object.assign(new Error(), { name: "Refusal", code: 403, reason: "not you" });
      if (value === 3) throw Object.assign(new Error(), { name: "Refusal", code: 403, reason: "\ud83d" });
      return value;
    },
    event: () => codes.push("event"),
  });
  await settle();
  const { url } = await failing;
  const quiet = console.error;
  console.error = () => codes.push("logged");
  for (const value of [0, 1, 2, 3]) node.say(request(url, value, { id: value + 1 }));
  node.say(request(`${url}/events`, 1, { id: 9 }));
  await settle();
  console.error = quiet;
  assert.deepEqual(node.said({ type: "response", to: PEER }).map(({ body }) => body.code), [500, 403, 500, 200]);
  assert.deepEqual(codes, ["logged", "logged", "event"]);
});

test("policy judges what crosses the runtime, both ways", async () => {
  const judged = [];
  const policy = ({ from, to }, direction) => {
    if (from === PEER || to === PEER) judged.push(direction);
    return from === PEER || to === PEER ? "no peers" : null;
  };
  const { node, runtime, echo, asked } = await echoing({ policy });
  node.say(request(echo.url, 1));
  const answer = await echo.ask("read", PEER, {});
  await settle();
  assert.deepEqual([answer.body.code, answer.body.description], [403, "no peers"]);
  assert.deepEqual(node.said({ type: "response", to: PEER }).map(({ body }) => body.code), [403]);
  assert.deepEqual([asked, judged], [[], ["in", "out"]]);
  assert.deepEqual(drops(runtime), { denied: 2 });
});

test("objects that a hyperty begins to observe side by side all get their changes", async () => {
  const { node, echo } = await echoing();
  const urls = ["comm://a.ex/one", "comm://a.ex/two"];
  node.answers = ({ type, to, from }) => {
    if (type !== "subscribe" || !to.endsWith("/subscription")) return undefined;
    return { code: 200, value: { version: 1, data: { n: 1 }, reporter: PEER } };
  };
  const copies = await Promise.all(urls.map((url) => echo.observe(url)));
  for (const from of urls) {
    const body = { version: 2, source: PEER, attribute: "n", value: 2 };
    node.say({ id: 1, type: "update", from, to: `${from}/changes`, body });
  }
  await settle();
  assert.deepEqual(copies.map(({ version, value }) => [version, value.n]), [[2, 2], [2, 2]]);
  await assert.rejects(echo.observe(urls[0]), { name: "Refusal", code: 409 });
});

test("nobody else speaks for an object that is being made", async () => {
  const { node, runtime } = await echoing();
  const asked = [];
  const deploying = [runtime.deploy("reporter", { subscribe: (one) => void asked.push(one) }), runtime.deploy("other", {})];
  await settle();
  const [reporter, other] = await Promise.all(deploying);
  node.addresses.push("comm://a.ex/mine");
  node.answers = ({ to, type }) => (to === "domain://registry.a.ex" && type === "create" ? false : undefined);
  const reporting = reporter.report("comm", {});
  await settle();
  const body = { message: { id: 1, type: "subscribe", from: PEER, to: "comm://a.ex/mine" } };
  const forged = other.ask("forward", reporter.url, body);
  for (const from of [PEER, "comm://a.ex/theirs"]) node.say({ id: 1, type: "forward", from, to: reporter.url, body });
  await settle();
  assert.deepEqual([asked, (await forged).body.code], [[], 400]);
  // The object itself asks already.
  const sm = "hyperty-runtime://a.ex/rb/sm";
  node.say({ id: 1, type: "subscribe", from: sm, to: "comm://a.ex/mine/subscription", body: { source: PEER } });
  await settle();
  assert.deepEqual(asked.map(({ object, observer }) => [object, observer]), [["comm://a.ex/mine", PEER]]);
  node.answers = () => undefined;
  node.say({ ...node.said({ type: "create", to: "domain://registry.a.ex" }).at(-1), type: "response", from: "domain://registry.a.ex", to: `${RUNTIME}/registry`, body: { code: 200 } });
  await settle();
  await reporting;
});

test("a runtime that closes unregisters, gives addresses back and ends its session", async () => {
  const { node, runtime, echo } = await echoing();
  const closing = runtime.close();
  await settle();
  await closing;
  assert.deepEqual(node.messages.slice(-3).map(({ type, body }) => [type, body.method ?? body.childrenResources ?? body.value]), [
    ["update", "disconnected"], ["delete", [echo.url]], ["execute", "close"],
  ]);
  await node.clock.turn(1);
  assert.equal(node.socket.closedBy, "runtime");
  await assert.rejects(runtime.deploy("late", {}), /is closed/);
  assert.equal(runtime.bus.isListenedTo(`${STUB}/status`), false);
});

test("a runtime that closes without a node does not wait long", async () => {
  const { node, runtime } = await echoing();
  node.accepts = false;
  node.cut();
  const closing = runtime.close();
  await node.clock.turn(5);
  await closing;
  assert.ok(runtime.trace.text().trim().endsWith('"k":"end"}'));
});

test("who has to vouch for peers is said in known words, and somebody can", async () => {
  const asked = { domain: "a.ex", node: "wss://node.a.ex/link" };
  const wrong = [[{ require: "identity_provider" }, /require is one of none, domain, identity-provider, not identity_provider/],
    [{ require: "identity-provider" }, /issuers names no identity provider/]];
  for (const [p2p, why] of wrong) await assert.rejects(openRuntime({ ...asked, p2p }), why);
});

test("only TLS leads to other machines, unless that is permitted", async () => {
  await assert.rejects(openRuntime({ domain: "a.ex", node: "ws://node.a.ex/link" }), /use wss:/);
  const { opening } = await opened({ node: "ws://node.a.ex/link", insecure: true });
  assert.equal((await opening).state, "live");
});
