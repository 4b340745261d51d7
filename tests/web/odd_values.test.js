// Values of JSON that nobody expects, at every place of every message that a node, a peer behind it,
// or a Worker sends: none is believed, none ends more than what it is about, and none is thrown.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openRuntime } from "../../web/src/index.js";
import "../../web/src/more.js";
import { FakeNode, PEER, RUNTIME, settle } from "./fake_node.js";
import { spoilt } from "./odd.js";

const MINE = "comm://a.ex/mine";
const THEIRS = "comm://a.ex/theirs";
const MANAGER = `${RUNTIME}/sm`;
const THEIR_MANAGER = "hyperty-runtime://a.ex/rb/sm";
const HONEST = "hyperty://a.ex/honest";
const CHILD = `${PEER}#1`;

const CHANGE = { version: 2, attribute: "a.b", value: 1, attributeType: "array", operation: "add", source: PEER };
const CHILD_SAID = { resource: CHILD, value: { text: "x" }, version: 3, attribute: "text", count: 1, digest: "00" };
const WHOLE = { url: THEIRS, version: 3, data: { n: 1 }, reporter: PEER, childrenObjects: { resources: { [CHILD]: { value: 1, version: 1 } } } };
const RECORD = { url: PEER, runtime: "hyperty-runtime://a.ex/rb", status: "live", expires: 100, descriptor: "d", name: "n", user: "u" };

/** What may come, and from where. */
const SENT = [
  ["create", PEER, HONEST, { value: 1 }], ["create", PEER, `${HONEST}/events`, { value: 1 }],
  ["update", THEIRS, `${THEIRS}/changes`, CHANGE], ["update", PEER, `${THEIRS}/changes`, CHANGE],
  ["update", THEIRS, `${THEIRS}/observers`, { value: [PEER], operation: "add", version: 1 }],
  ["create", PEER, `${THEIRS}/children/resources`, CHILD_SAID], ["update", PEER, `${MINE}/children/resources`, CHILD_SAID],
  ["update", THEIRS, `${THEIRS}/children/resources`, CHILD_SAID], ["delete", PEER, `${MINE}/children/resources`, CHILD_SAID],
  ["create", PEER, `${MINE}/children/resources`, CHILD_SAID],
  ["forward", THEIRS, HONEST, { message: { from: PEER, to: THEIRS, type: "subscribe", id: 1 } }],
  ["create", `${THEIRS}/subscription`, HONEST, { source: PEER, schema: "s", value: { name: "n" } }],
  ["unsubscribe", THEIR_MANAGER, HONEST, { resource: THEIRS }], ["update", THEIR_MANAGER, HONEST, { resource: THEIRS, value: WHOLE }],
  ["subscribe", THEIR_MANAGER, `${MINE}/subscription`, { source: PEER, version: 1, renews: true }],
  ["unsubscribe", THEIR_MANAGER, `${MINE}/subscription`, { source: PEER }],
  ["read", PEER, MINE, { attribute: "a" }], ["read", PEER, `${MINE}/observers`, { attribute: "a" }],
  ["subscribe", `${THEIRS}/subscription`, MANAGER, { resource: THEIRS }],
  ["unsubscribe", `${THEIRS}/subscription`, MANAGER, { resource: THEIRS, observer: "x" }],
  ["update", "domain://registry.a.ex", `${PEER}/registration`, { attribute: "status", value: "live" }],
  ["update", PEER, `${PEER}/status`, { value: "live", resource: PEER, link: "l" }],
  ["response", PEER, HONEST, { code: 200, value: 1, source: PEER, sequence: 1 }],
  ["read", PEER, `${RUNTIME}/registry`, { resource: RUNTIME }], ["execute", PEER, `${RUNTIME}/protostub/1`, { method: "x", params: [] }],
];

const until = async (promise) => {
  await settle();
  return promise;
};

async function opened(t) {
  const node = new FakeNode();
  node.addresses.push(HONEST, MINE);
  node.answers = ({ to }) => (to === `${THEIRS}/subscription` || to === THEIRS ? { code: 200, value: { url: THEIRS, version: 1, data: {} } } : undefined);
  const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, trace: true };
  const runtime = await until(openRuntime({ ...options, connect: node.connect, clock: node.clock }));
  t.after(async () => {
    void runtime.close();
    await node.clock.turn(30);
  });
  const honest = await until(runtime.deploy("honest", { request: ({ body }) => body.value ?? null, subscribe() {}, invited() {}, event() {} }));
  return { node, runtime, honest };
}

/** The page works as before. */
async function works({ node, honest }) {
  const asking = honest.request(PEER, "hello");
  await settle();
  const { id } = node.said({ from: honest.url, to: PEER }).at(-1);
  node.say({ id, type: "response", from: PEER, to: honest.url, body: { code: 200, value: "hello" } });
  assert.equal(await asking, "hello");
  node.say({ id: 10 ** 12, type: "create", from: PEER, to: HONEST, body: { value: "hello" } });
  await settle();
  assert.equal(node.said({ type: "response", to: PEER, id: 10 ** 12 })[0].body.value, "hello");
  assert.equal({}.polluted, undefined);
}

for (const [type, from, to, body] of SENT) {
  test(`${type} of ${from} to ${to}`, async (t) => {
    const all = await opened(t);
    const { node, runtime, honest } = all;
    const mine = await until(honest.report("comm", { n: 0 }));
    const observing = async () => until(honest.observe(THEIRS));
    let theirs = await observing();
    await until(runtime.follow(PEER, () => {}));
    let id = 1;
    for (const one of spoilt(body)) {
      // What is not even a message costs the node its link, if it is much.
      if (theirs.gone) theirs = await observing();
      node.say({ id: (id += 1), type, from, to, body: one });
      if (id % 10 === 0) await node.clock.turn(61);
    }
    await node.clock.turn(400);
    await mine.set("n", 1).catch(() => {});
    await works(all);
    assert.ok(runtime.trace.text());
  });
}

/** What the page asks, and what it is answered. */
const ASKED = {
  deploy: [({ runtime }) => runtime.deploy("other", {}), "domain://msg-node.a.ex/address-allocation", { code: 200, value: { allocated: [HONEST] } }],
  recall: [({ runtime }) => runtime.deploy("other", {}), "domain://registry.a.ex", { code: 200, value: RECORD, description: "d", retryAfter: 1 }],
  find: [({ runtime }) => runtime.find("user://a.ex/u"), "domain://registry.a.ex", { code: 200, value: RECORD }],
  follow: [({ runtime }) => runtime.follow(PEER, () => {}), "domain://registry.a.ex", { code: 408, value: RECORD }],
  report: [({ honest }) => honest.report("comm", {}), "domain://msg-node.a.ex/address-allocation", { code: 200, value: { allocated: [MINE] } }],
  register: [({ honest }) => honest.report("comm", {}), "domain://registry.a.ex", { code: 200, value: 1, description: "d" }],
  observe: [({ honest }) => honest.observe(THEIRS), `${THEIRS}/subscription`, { code: 200, value: WHOLE, lease: 10, renewed: true, description: "d" }],
  ask: [({ honest }) => honest.request(PEER, 1), PEER, { code: 403, value: 1, description: "d", retryAfter: 1, source: PEER }],
};

for (const [name, [act, address, body]] of Object.entries(ASKED)) {
  test(`odd answers to what is asked: ${name}`, async (t) => {
    const all = await opened(t);
    const { node } = all;
    const { answers } = node;
    for (const one of spoilt(body)) {
      node.answers = (message) => (message.to === address ? one : answers(message));
      let isSettled = false;
      const settled = () => (isSettled = true);
      const asked = act(all);
      asked.then(settled, settled);
      await node.clock.turn(0.1);
      // An answer that is none is not heard at all.
      if (!isSettled) await node.clock.turn(200);
      assert.ok(isSettled, JSON.stringify(one).slice(0, 200));
      node.answers = answers;
      const done = await asked.catch(() => null);
      if (typeof done?.close === "function") {
        void done.close();
        await node.clock.turn(1);
      }
    }
    await node.clock.turn(100);
    await works(all);
  });
}

test("odd answers to what opens a session open one, or say why not", async () => {
  const identity = { runtime: RUNTIME, user: "user://a.ex/u", vouchedBy: "domain" };
  const given = { sessionToken: "t", identity, statement: "a.b.c", domainKeys: { keys: [{ kid: "k" }] }, challenge: "c" };
  for (const one of spoilt({ code: 200, value: given, description: "d", retryAfter: 1 })) {
    const node = new FakeNode();
    node.control = () => one;
    const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null };
    let outcome = null;
    openRuntime({ ...options, connect: node.connect, clock: node.clock }).then(
      (runtime) => (outcome = runtime),
      (error) => (outcome = error),
    );
    await node.clock.turn(60);
    assert.ok(outcome, JSON.stringify(one).slice(0, 200));
    if (outcome instanceof Error) continue;
    void outcome.close();
    await node.clock.turn(20);
  }
});
