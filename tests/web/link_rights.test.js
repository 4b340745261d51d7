// What a peer may say of data objects over its link: what this runtime has asked for there, and in
// its own name (I-D1, C-81).

import assert from "node:assert/strict";
import { test } from "node:test";

import "../../web/src/more.js";
import { READ_PAUSE, REPLY_TIMEOUT } from "../../web/src/constants.js";
import { replyTo } from "../../web/src/message.js";
import { linked, REACHABLE, REMOTE } from "./fake_links.js";
import { PEER, RUNTIME, settle } from "./fake_node.js";

const MINE = "comm://a.ex/mine";
const THEIRS = "comm://a.ex/theirs";
const MANAGER = `${REMOTE}/sm`;
const OTHER = "hyperty-runtime://a.ex/rc";
const OBSERVER = "hyperty://a.ex/observer";
const WHOLE = { url: THEIRS, version: 1, data: { n: 1 }, reporter: PEER, childrenObjects: { resources: {} } };
const OWNED = { runtime: REMOTE, expires: 60, status: "live" };

/** A page with a live link to the runtime of a peer, who reports an object. */
async function opened() {
  const records = { [PEER]: REACHABLE, [THEIRS]: { ...OWNED, url: THEIRS }, [OBSERVER]: { ...OWNED, url: OBSERVER, runtime: OTHER } };
  const made = await linked(records, false, { request: ({ body }) => body.value, subscribe() {} });
  const { node, runtime, stubs, echo } = made;
  node.addresses.push(MINE);
  const { answers } = node;
  node.answers = (message) => (message.to === `${THEIRS}/subscription` || message.to === THEIRS ? { code: 200, value: WHOLE } : answers(message));
  const manager = runtime.sync();
  await settle();
  (await manager).useLinks(runtime.registry.links);
  void echo.ask("create", PEER, { value: "first" });
  await settle();
  const [stub] = stubs;
  for (const value of ["created", "in-progress", "live"]) stub.report(value);
  await settle();
  let id = 100;
  /** Bring a message over the link; return what it was answered there. */
  const bring = async (message) => {
    const whole = { id: (id += 1), body: {}, ...message };
    stub.bring(whole);
    await settle();
    return stub.messages.find((one) => one.type === "response" && one.id === whole.id)?.body.code;
  };
  /** Have a message come by the node. */
  const say = async (message) => {
    node.say({ id: (id += 1), body: {}, ...message });
    await settle();
  };
  /** Wait for what needs turns of the tasks. */
  const done = async (promise) => {
    await settle();
    return promise;
  };
  return { ...made, stub, bring, say, done };
}

test("changes and children come by a link only if they were asked for there", async () => {
  const { node, runtime, echo, bring, say, done, stub } = await opened();
  const theirs = await done(echo.observe(THEIRS, { p2p: false }));
  const change = { type: "update", from: THEIRS, to: `${THEIRS}/changes` };
  await bring({ ...change, body: { version: 2, attribute: "n", value: "by the link" } });
  const child = { resource: `${PEER}#1`, value: { text: "by the link" }, version: 1 };
  await bring({ type: "create", from: THEIRS, to: `${THEIRS}/children/resources`, body: child });
  assert.deepEqual([theirs.value, theirs.version, theirs.children.size], [{ n: 1 }, 1, 0]);
  await bring({ type: "delete", from: THEIRS, to: `${THEIRS}/changes` });
  assert.equal(theirs.gone, null);
  await bring({ type: "unsubscribe", from: `${THEIRS}/subscription`, to: `${RUNTIME}/sm`, body: { resource: THEIRS } });
  await bring({ type: "unsubscribe", from: PEER, to: echo.url, body: { resource: THEIRS } });
  assert.equal(theirs.gone, null);
  assert.ok(runtime.counters.drops.get("forged-status") >= 4);
  assert.ok(runtime.counters.drops.get("denied") >= 1);
  await say({ ...change, body: { version: 2, attribute: "n", value: "by the node" } });
  assert.deepEqual(theirs.value, { n: "by the node" });

  // Whoever observes by any way observes by the link, from the request on.
  const other = runtime.deploy("other", {});
  await settle();
  await theirs.close();
  const observing = (await other).observe(THEIRS);
  await settle();
  const asked = stub.messages.findLast(({ to, type }) => type === "subscribe" && to === `${THEIRS}/subscription`);
  await bring({ ...change, body: { version: 2, attribute: "n", value: "by the link" } });
  stub.bring(replyTo(asked, 200, { value: WHOLE }));
  const seen = await done(observing);
  assert.deepEqual(seen.value, { n: "by the link" });
  await bring({ type: "delete", from: THEIRS, to: `${THEIRS}/changes` });
  assert.equal(seen.gone?.code, 410);
  assert.equal(node.said({ to: `${THEIRS}/changes` }).length, 0);
});

/** Observe an object by the node; its reporter's end then serves the link, which is asked for. */
async function moving() {
  const made = await opened();
  const { node, echo, stub, done } = made;
  const lastOf = (kind) => stub.messages.findLast(({ to, type }) => type === kind && to === `${THEIRS}/subscription`);
  const paths = (type) => node.said({ type, to: "domain://msg-node.a.ex/sm" }).filter(({ body }) => body.resources.includes(`${THEIRS}/changes`)).length;
  const theirs = await done(echo.observe(THEIRS));
  await settle();
  stub.bring(replyTo(lastOf("subscribe"), 200, { value: WHOLE }));
  await settle();
  return { ...made, theirs, paths };
}

test("the path at the node stays for a while when changes come by a link, for those under way", async () => {
  const { node, theirs, paths, say } = await moving();
  const change = { type: "update", from: THEIRS, to: `${THEIRS}/changes` };
  assert.deepEqual([paths("subscribe"), paths("unsubscribe")], [1, 0]);
  await node.clock.turn(READ_PAUSE / 2);
  await say({ ...change, body: { version: 2, attribute: "n", value: "by the node" } });
  assert.deepEqual([theirs.value, theirs.isStale, paths("unsubscribe")], [{ n: "by the node" }, false, 0]);
  await node.clock.turn(READ_PAUSE);
  assert.equal(paths("unsubscribe"), 1);
});

test("no path is set for an object that was closed while a link was asked", async () => {
  const { node, echo, stub, theirs, paths } = await moving();
  const lastOf = (kind) => stub.messages.findLast(({ to, type }) => type === kind && to === `${THEIRS}/subscription`);
  const answer = async (message, code) => {
    stub.bring(replyTo(message, code, {}));
    await node.clock.turn(1);
  };
  await node.clock.turn(2 * READ_PAUSE);
  void theirs.close();
  await node.clock.turn(1);
  await answer(lastOf("unsubscribe"), 200);
  const before = paths("subscribe");
  const observing = echo.ask("subscribe", `${RUNTIME}/sm`, { resource: THEIRS });
  await node.clock.turn(1);
  const asked = lastOf("subscribe");
  void echo.ask("unsubscribe", `${RUNTIME}/sm`, { resource: THEIRS });
  await node.clock.turn(1);
  await answer(lastOf("unsubscribe"), 200);
  await answer(asked, 503);
  assert.deepEqual([(await observing).body.code, paths("subscribe") - before], [410, 0]);
});

test("a leave that gets no answer by a link takes no newer subscription back", async () => {
  const { node, echo, stub, done } = await opened();
  const lastOf = (kind) => stub.messages.findLast(({ to, type }) => type === kind && to === `${THEIRS}/subscription`);
  const first = await done(echo.observe(THEIRS));
  await settle();
  // It moves to the link.
  stub.bring(replyTo(lastOf("subscribe"), 200, { value: WHOLE }));
  await node.clock.turn(4);
  void first.close();
  await node.clock.turn(1);
  assert.ok(lastOf("unsubscribe"), "it leaves by the link");
  stub.report("disconnected");
  stub.report("failed");
  await node.clock.turn(1);
  const again = echo.ask("subscribe", `${RUNTIME}/sm`, { resource: THEIRS });
  await node.clock.turn(1);
  assert.equal((await again).body.code, 200);
  const before = node.said({}).length;
  await node.clock.turn(2 * REPLY_TIMEOUT);
  const after = node.said({}).slice(before);
  assert.deepEqual(after.filter(({ to, type }) => type === "unsubscribe" && to === `${THEIRS}/subscription`), []);
});

test("over its link a peer answers for its own runtime only", async () => {
  const { node, runtime, echo, stub, bring, say, done } = await opened();
  const mine = await done(echo.report("comm", { n: 1 }, { allow: [PEER, OBSERVER] }));
  const joins = { type: "subscribe", to: `${MINE}/subscription` };
  assert.equal(await bring({ ...joins, from: MANAGER, body: { source: PEER, renews: true } }), 200);
  await say({ ...joins, from: `${OTHER}/sm`, body: { source: OBSERVER, renews: true } });
  assert.deepEqual([...mine.observers].sort(), [OBSERVER, PEER]);

  let isClosed = false;
  const closing = mine.close().then(() => (isClosed = true));
  await settle();
  const asked = stub.messages.findLast(({ to, type }) => type === "delete" && to === `${MINE}/changes`);
  const forged = [{ source: OTHER }, { source: `${REMOTE}/sm` }, { source: 7 }, {}];
  for (const body of forged) stub.bring(replyTo(asked, 200, body));
  stub.bring(replyTo(asked, 200, { source: REMOTE }));
  await settle();
  assert.ok(!isClosed, "a peer has answered for another runtime");
  assert.equal(runtime.counters.drops.get("unknown-source"), forged.length);
  const [byNode] = node.said({ type: "delete", to: `${MINE}/changes` });
  await say({ ...replyTo(byNode, 200, { source: OTHER }) });
  await closing;
});

test("a durable request goes by the node, and one that comes again from another place is the same", async () => {
  const { node, echo, stub, say } = await opened();
  const before = stub.messages.length;
  void echo.ask("create", PEER, { value: 1, durable: true });
  await settle();
  assert.equal(stub.messages.length, before);
  assert.equal(node.said({ to: PEER }).at(-1).body.durable, true);

  for (const durable of [5, 6]) await say({ id: 7, type: "create", from: OBSERVER, to: echo.url, body: { value: 2, durable } });
  const codes = node.said({ type: "response", to: OBSERVER, id: 7 }).map(({ body }) => body.code);
  assert.deepEqual(codes, [200, 200]);
});

test("what a peer does with its children by a link is reported to all others, as it has numbered it", async () => {
  const { node, echo, bring, say, done } = await opened();
  const mine = await done(echo.report("comm", { n: 1 }, { allow: [PEER, OBSERVER] }));
  const joins = { type: "subscribe", to: `${MINE}/subscription` };
  await bring({ ...joins, from: MANAGER, body: { source: PEER, renews: true } });
  await say({ ...joins, from: `${OTHER}/sm`, body: { source: OBSERVER, renews: true } });
  const child = { from: PEER, to: `${MINE}/children/resources`, body: { resource: `${PEER}#1`, value: "a" } };
  assert.equal(await bring({ ...child, id: 500, type: "create" }), 200);
  await bring({ ...child, id: 502, type: "update", body: { ...child.body, value: "b" } });
  await bring({ ...child, id: 504, type: "delete" });
  const reports = node.said({ from: MINE, to: `${MINE}/children/resources` }).map(({ type, body }) => [type, body.version, body.value]);
  assert.deepEqual(reports.filter(([, version]) => version), [["update", 500, "a"], ["update", 502, "b"], ["delete", 504, undefined]]);
  assert.equal(mine.children.size, 0);
});

test("what a creator writes by a link is for the reporter's end alone, which knows who may write", async () => {
  const { runtime, echo, bring, say, done } = await opened();
  const mine = await done(echo.report("comm", { n: 1 }, { allow: [OBSERVER] }));
  await say({ type: "subscribe", to: `${MINE}/subscription`, from: `${OTHER}/sm`, body: { source: OBSERVER, renews: true } });
  const other = await done(runtime.deploy("other", {}));
  const seen = await done(other.observe(MINE));
  const child = { from: PEER, to: `${MINE}/children/resources`, body: { resource: `${PEER}#1`, value: "a" } };
  assert.equal(await bring({ ...child, type: "create" }), 403);
  await bring({ ...child, type: "update" });
  assert.deepEqual([mine.children.size, seen.children.size], [0, 0]);

  // Who only observes an object is told of its children by the object.
  const theirs = await done(echo.observe(THEIRS, { p2p: false }));
  const elsewhere = { ...child, to: `${THEIRS}/children/resources` };
  assert.equal(await bring({ ...elsewhere, type: "create" }), 503);
  await bring({ ...elsewhere, type: "update" });
  assert.equal(theirs.children.size, 0);
  assert.equal(await bring({ ...child, type: "create", to: `${echo.url}/children/resources` }), 503);
});
