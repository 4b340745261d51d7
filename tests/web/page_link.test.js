// The link of a page to its node: what is believed of it, what survives its loss, how often it is dialled.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ERROR_WINDOW, GOODBYE_TIMEOUT, MAX_MALFORMED, OUTBOX_MESSAGES } from "../../web/src/constants.js";
import { openRuntime } from "../../web/src/index.js";
import { FakeNode, PEER, reply, request, RUNTIME, SESSION, settle, STUB } from "./fake_node.js";

async function opened(node = new FakeNode(), more = {}) {
  const opening = openRuntime({ domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, trace: true, connect: node.connect, clock: node.clock, ...more });
  opening.catch(() => {});
  await settle();
  return { node, opening };
}

async function echoing(more) {
  const { node, opening } = await opened(undefined, more);
  const runtime = await opening;
  const deploying = runtime.deploy("echo", { request: ({ body }) => body.value });
  await settle();
  return { node, runtime, echo: await deploying };
}

test("nobody but the node answers for the session", async () => {
  const { node, opening } = await opened(Object.assign(new FakeNode(), { control: () => null }));
  let isOpen = false;
  opening.then(() => (isOpen = true));
  const [asked] = node.messages.filter(({ to }) => to === SESSION);
  const said = { id: asked.id, type: "response", to: STUB, body: { code: 200, value: { sessionToken: "forged" } } };
  for (const from of [PEER, "domain://msg-node.b.ex/session", "domain://msg-node.a.ex/sm", RUNTIME, STUB]) node.say({ ...said, from });
  await settle();
  assert.equal(isOpen, false);
  node.say(reply(asked, { code: 200, value: { sessionToken: "token" } }));
  await settle();
  assert.equal((await opening).session, "token");
});

test("the token of the session is that of the last answer: it opens the session after a reload", async () => {
  const { node, runtime } = await echoing();
  assert.equal(runtime.session, "token-1");
  node.cut();
  await node.clock.turn(1);
  assert.deepEqual([runtime.state, runtime.session], ["live", "token-2"]);
  const { opening } = await opened(node, { session: runtime.session });
  await opening;
  assert.deepEqual(node.controls.at(-1), { method: "re-open", params: { runtimeURL: RUNTIME, token: "token-2" } });
});

test("what the link had not written when it broke goes first by the next one, in order", async () => {
  const node = Object.assign(new FakeNode(), { control: () => ({ code: 200, value: { sessionToken: "t", rate: 10, burst: 8 } }) });
  const runtime = await (await opened(node)).opening;
  const deploying = runtime.deploy("echo", {});
  await settle();
  const echo = await deploying;
  await node.clock.turn(2);
  node.socket.bufferedAmount = 2 ** 30;
  // Some wait for the link, the others for the rate of the node.
  for (let value = 1; value <= 20; value += 1) echo.send(PEER, value);
  await node.clock.turn(0.01);
  node.cut();
  await node.clock.turn(30);
  const sent = node.said({ to: `${PEER}/events` }).map(({ body }) => body.value);
  assert.deepEqual(sent, Array.from({ length: 20 }, (_, at) => at + 1));
});

test("a node that ends each link at once is dialled with pauses that grow", async () => {
  const { node } = await echoing();
  const { control } = node;
  node.control = (message) => {
    queueMicrotask(() => queueMicrotask(() => node.cut("at once")));
    return control(message);
  };
  node.cut();
  await node.clock.turn(30);
  assert.ok(node.sockets.length <= 12, `dialled ${node.sockets.length} times`);
  assert.ok(node.sockets.length >= 4);
});

test("a node that takes a connection and says nothing is dialled again", async () => {
  const node = new FakeNode();
  let dialled = 0;
  const silent = { bufferedAmount: 0, send() {}, close() {}, onopen: null, onmessage: null, onclose: null, onerror: null };
  const { opening } = await opened(node, { connect: () => ((dialled += 1) === 1 ? node.connect() : { ...silent }) });
  await opening;
  node.cut();
  await node.clock.turn(30);
  assert.ok(dialled > 3, `dialled ${dialled} times`);
});

test("a message that went by this link before is not sent again", async () => {
  const { node, runtime, echo } = await echoing();
  void echo.ask("create", PEER, { value: 1, via: [STUB] });
  await settle();
  assert.deepEqual([node.said({ to: PEER }), runtime.counters.drops.get("loop")], [[], 1]);
});

test("a message that is too large for the node is refused here", async () => {
  const { node, runtime } = await echoing();
  const before = node.messages.length;
  const asking = runtime.ask("read", "domain://registry.a.ex", { criteria: Array.from({ length: 200 }, () => "x".repeat(400)) });
  await settle();
  assert.equal((await asking).body.code, 413);
  assert.equal(node.messages.length, before);
});

test("no identity is sent: the node says who sends", async () => {
  const identity = { runtime: RUNTIME, user: "user://a.ex/bob", vouchedBy: "domain" };
  const node = Object.assign(new FakeNode(), { control: () => ({ code: 200, value: { sessionToken: "t", identity } }) });
  const { opening } = await opened(node);
  const runtime = await opening;
  const deploying = runtime.deploy("echo", { request: ({ body }) => body.value });
  await settle();
  const echo = await deploying;
  void echo.ask("create", PEER, { value: 1, identity });
  node.say(request(echo.url, 2));
  await settle();
  assert.ok(node.said({ to: PEER }).length >= 2);
  assert.ok(!node.frames.some((frame) => frame.includes("identity")));
});

test("the end of the session is written before the link is closed", async () => {
  const { node, runtime } = await echoing();
  const { socket } = node;
  const closing = runtime.close();
  await settle();
  assert.equal(socket.closedBy, null);
  await node.clock.turn(GOODBYE_TIMEOUT);
  await closing;
  assert.deepEqual([node.controls.at(-1).method, socket.closedBy], ["close", "runtime"]);
});

test("what comes back by the node that went by this stub is dropped", async () => {
  const { node, runtime, echo } = await echoing();
  node.say(request(echo.url, 1, { body: { value: 1, via: [STUB] } }));
  await settle();
  assert.deepEqual([node.said({ type: "response", to: PEER }), runtime.counters.drops.get("loop")], [[], 1]);
});

test("malformed lines count for a while only", async () => {
  const { node } = await echoing();
  for (let nth = 0; nth < 3; nth += 1) {
    for (let at = 0; at < MAX_MALFORMED; at += 1) node.say("{");
    await node.clock.turn(ERROR_WINDOW + 1);
    assert.equal(node.sockets.length, 1);
  }
});

test("messages that cannot be written take no room from others", async () => {
  const { node, runtime, echo } = await echoing();
  const large = Array.from({ length: 200 }, () => "x".repeat(400));
  // The link takes nothing for a while.
  node.socket.bufferedAmount = 2 ** 30;
  for (let nth = 1; nth < OUTBOX_MESSAGES; nth += 1) echo.send(PEER, nth);
  await settle();
  const refused = Array.from({ length: 20 }, () => runtime.ask("read", "domain://registry.a.ex", { criteria: large }));
  await settle();
  assert.deepEqual(new Set((await Promise.all(refused)).map(({ body }) => body.code)), new Set([413]));
  void echo.ask("create", PEER, { value: "there" });
  await settle();
  node.socket.bufferedAmount = 0;
  await node.clock.turn(1);
  assert.equal(node.said({ to: PEER }).length, 1);
});
