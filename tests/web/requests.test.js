// Requests and their answers on the bus of a page: how long each waits, what comes twice or late,
// and what is left of it afterwards.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ANSWERS_KEPT, DEDUP_ALL_BYTES, DEDUP_BYTES, DEDUP_SECONDS, EVENTS_WAITING, HOP_LIMIT, MAILBOX, OPEN_REQUESTS, REPLY_TIMEOUT } from "../../web/src/constants.js";
import { openRuntime } from "../../web/src/index.js";
import "../../web/src/more.js";
import { DeduplicationWindow } from "../../web/src/transactions.js";
import { FakeNode, PEER, reply, request, settle } from "./fake_node.js";

const MINE = "comm://a.ex/mine";

async function opened(code = {}) {
  const node = new FakeNode();
  const opening = openRuntime({ domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, trace: true, connect: node.connect, clock: node.clock });
  await settle();
  const runtime = await opening;
  const deploying = runtime.deploy("echo", { request: ({ body }) => body.value, ...code });
  await settle();
  const hyperty = await deploying;
  const say = async (...messages) => {
    for (const one of messages) node.say(one);
    await settle();
  };
  /** Ask the peer; `outcome` is what came of it, and when. */
  const ask = async (value, provisional) => {
    const outcome = {};
    const settled = (result) => Object.assign(outcome, { result, at: node.clock.now() });
    hyperty.request(PEER, value, { provisional }).then(settled, ({ code: refused }) => settled(refused));
    await settle();
    return { outcome, asked: node.said({ to: PEER }).at(-1) };
  };
  const drops = (reason) => runtime.counters.drops.get(reason) ?? 0;
  return { node, runtime, hyperty, say, ask, drops };
}

test("each request waits for its own time, whatever prolongs another", async () => {
  const { node, say, ask, drops } = await opened();
  const begun = node.clock.now();
  const one = await ask("one");
  await node.clock.turn(1);
  const two = await ask("two");
  await node.clock.turn(REPLY_TIMEOUT - 5);
  await say(reply(one.asked, { code: 100, sequence: 1 }));
  await node.clock.turn(6);
  assert.deepEqual([one.outcome, two.outcome], [{}, { result: 408, at: begun + 1 + REPLY_TIMEOUT }]);
  await say(reply(two.asked, { code: 200, value: "late" }));
  assert.deepEqual([drops("late-response"), drops("unmatched")], [1, 0]);
  await say(reply(one.asked, { code: 200, value: "there" }));
  assert.equal(one.outcome.result, "there");
  await say(reply(one.asked, { code: 200, value: "again" }), { ...reply(one.asked, { code: 200 }), id: 12345 });
  assert.equal(drops("late-response"), 1);
});

test("an answer that two paths bring counts once, a provisional one too", async () => {
  const { say, ask } = await opened();
  const seen = [];
  const { asked, outcome } = await ask(1, ({ body }) => seen.push(body.value));
  const first = reply(asked, { code: 100, sequence: 1, value: "a" });
  await say(first, first, reply(asked, { code: 100, sequence: 2, value: "b" }), first);
  assert.deepEqual(seen, ["a", "b"]);
  await say(reply(asked, { code: 200, value: "end" }), reply(asked, { code: 200, value: "other" }));
  assert.equal(outcome.result, "end");
});

test("another request with the id of an open or answered one is refused, the same is not handled again", async () => {
  const heard = [];
  let answer;
  const { node, hyperty, say } = await opened({ request: ({ body }) => (heard.push(body.value), new Promise((resolve) => (answer = () => resolve(body.value)))) });
  const codes = () => node.said({ type: "response", id: 7 }).map(({ body }) => body.code);
  await say(request(hyperty.url, 1), request(hyperty.url, 1));
  assert.deepEqual([heard, codes()], [[1], []]);
  await say(request(hyperty.url, 2));
  assert.deepEqual([heard, codes()], [[1], [400]]);
  answer();
  await settle();
  await say(request(hyperty.url, 1), request(hyperty.url, 3));
  assert.deepEqual([heard, codes()], [[1], [400, 200, 200, 400]]);
});

test("what came long ago may come again", async () => {
  const heard = [];
  const { node, hyperty, say } = await opened({ event: ({ body }) => heard.push(body.value) });
  const event = request(`${hyperty.url}/events`, "x");
  await say(event, event);
  assert.equal(heard.length, 1);
  await node.clock.turn(DEDUP_SECONDS - 5);
  await say(event);
  assert.equal(heard.length, 1);
  await node.clock.turn(10);
  await say(event);
  assert.equal(heard.length, 2);
});

test("what a sender has sent is remembered in bounded memory", async () => {
  const heard = [];
  const { node, hyperty, say } = await opened({ event: ({ body }) => heard.push(body.value) });
  const event = request(`${hyperty.url}/events`, "x");
  await say(event, event);
  assert.equal(heard.length, 1);
  const long = `${hyperty.url}/${"x".repeat(1800)}`;
  for (let nth = 0; nth * long.length < DEDUP_BYTES; nth += 1) node.say(request(long, nth, { id: 1000 + nth }));
  await settle();
  await say(event);
  assert.equal(heard.filter((value) => value === "x").length, 2);
});

test("who has too many open requests is refused, until they are answered or over", async () => {
  const heard = [];
  const { node, hyperty, say } = await opened({ request: ({ id }) => (heard.push(id), new Promise(() => {})) });
  const codeOf = (id) => node.said({ type: "response", id })[0]?.body.code;
  let id = 1000;
  const crowd = async () => {
    for (let nth = 0; nth < OPEN_REQUESTS; nth += 1) node.say(request(hyperty.url, nth, { id: (id += 1) }));
    await settle();
  };
  await crowd();
  await say(request(hyperty.url, "one more", { id: 5000 }));
  assert.equal(codeOf(5000), 503);
  assert.ok(node.said({ type: "response", id: 5000 })[0].body.retryAfter > 0);
  // Its sender has had its 408 from its own bus: nobody else says it.
  await node.clock.turn(REPLY_TIMEOUT + 1);
  assert.equal(node.said({ type: "response" }).filter(({ body }) => body.code === 408).length, 0);
  const before = heard.length;
  await crowd();
  assert.ok(heard.length > before, "what is over still counts as open");
});

test("requests to a hyperty that is not here leave nothing open to it", async () => {
  const { node, runtime, hyperty, say } = await opened();
  const { url } = hyperty;
  const undeploying = hyperty.close();
  await settle();
  await undeploying;
  let id = 1000;
  for (let nth = 0; nth <= OPEN_REQUESTS; nth += 1) node.say(request(url, nth, { id: (id += 1) }));
  await settle();
  assert.equal(node.said({ type: "response", id })[0].body.code, 404);
  node.addresses.push(url);
  const deploying = runtime.deploy("echo", { request: ({ body }) => body.value });
  await settle();
  assert.equal((await deploying).url, url);
  await say(request(url, "back", { id: 5000 }));
  assert.equal(node.said({ type: "response", id: 5000 })[0].body.value, "back");
});

test("of several that answer from one address each is heard, and no other", async () => {
  const { node, hyperty, say, drops } = await opened({ subscribe() {} });
  node.addresses.push(MINE);
  const reporting = hyperty.report("comm", { n: 1 }, { public: true });
  await settle();
  const mine = await reporting;
  const runtimes = ["rb", "rc"].map((name) => `hyperty-runtime://a.ex/${name}`);
  let id = 100;
  for (const runtime of runtimes) {
    const body = { source: `hyperty://a.ex/of-${runtime.slice(-2)}`, renews: true };
    await say({ id: (id += 1), type: "subscribe", from: `${runtime}/sm`, to: `${MINE}/subscription`, body });
  }
  assert.equal(mine.observers.length, 2);
  let isClosed = false;
  const closing = mine.close().then(() => (isClosed = true));
  await settle();
  const [asked] = node.said({ type: "delete", to: `${MINE}/changes` });
  await say(reply(asked, { code: 200, source: "hyperty-runtime://a.ex/rz" }));
  assert.deepEqual([isClosed, drops("unmatched")], [false, 1]);
  const unsubscribed = () => node.said({ type: "unsubscribe", to: "domain://msg-node.a.ex/sm" }).length;
  const before = unsubscribed();
  await say(reply(asked, { code: 200, source: runtimes[0] }));
  await say(reply(asked, { code: 200, source: runtimes[0] }));
  assert.equal(unsubscribed(), before);
  await say(reply(asked, { code: 200, source: runtimes[1] }));
  assert.ok(unsubscribed() > before);
  await closing;
  assert.equal(drops("late-response"), 0);
});

test("a runtime that closes leaves no request without an answer", async () => {
  const { node, runtime, ask } = await opened();
  const { outcome } = await ask(1);
  void runtime.close();
  await node.clock.turn(30);
  assert.ok([410, 503].includes(outcome.result), String(outcome.result));
  assert.ok(outcome.at < node.clock.now() - REPLY_TIMEOUT);
});

test("the answers to the last requests are kept, and no older ones", async () => {
  const { node, hyperty, say } = await opened();
  const answers = (id) => node.said({ type: "response", id }).length;
  for (let id = 1; id <= ANSWERS_KEPT + 1; id += 1) await say(request(hyperty.url, id, { id }));
  for (const id of [1, 2, ANSWERS_KEPT + 1]) await say(request(hyperty.url, id, { id }));
  assert.deepEqual([1, 2, ANSWERS_KEPT + 1].map(answers), [1, 2, 2]);
});

test("of too many senders the one that is silent for longest is forgotten first", async () => {
  const heard = [];
  const { hyperty, node } = await opened({ event: ({ from, id }) => heard.push(`${from} ${id}`) });
  const say = async (nth, id = 1) => {
    node.say(request(`${hyperty.url}/events`, "x", { from: `hyperty://a.ex/${nth}`, id }));
    if (nth % 100 === 0) await settle();
  };
  const most = 4096;
  for (let nth = 1; nth <= most; nth += 1) await say(nth);
  await settle();
  // The first one is heard again, so the second one is the oldest.
  await say(1, 2);
  await say(most + 1);
  await settle();
  const before = heard.length;
  assert.equal(before, most + 2);
  for (const nth of [1, 3, most, 2]) await say(nth);
  await settle();
  assert.deepEqual(heard.slice(before), ["hyperty://a.ex/2 1"]);
});

test("a message that has crossed too many stubs goes no further", async () => {
  const { node, hyperty, say, drops } = await opened();
  const via = (count) => Array.from({ length: count }, (_, at) => `hyperty-runtime://a.ex/r${at}/protostub/1`);
  // The stub of this runtime is one more.
  for (const [at, count] of [HOP_LIMIT - 1, HOP_LIMIT].entries()) {
    await say(request(hyperty.url, count, { id: 20 + at, body: { value: count, via: via(count) } }));
  }
  const answers = node.said({ type: "response", to: PEER }).map(({ id, body }) => [id, body.code]);
  assert.deepEqual([answers, drops("loop")], [[[20, 200]], 1]);
});

test("who has asked much may ask more, once it is answered; and events leave room for requests", async () => {
  const going = [];
  const { node, hyperty, say, drops } = await opened({ event: () => new Promise((resolve) => going.push(resolve)) });
  const codes = (from) => node.said({ type: "response", to: from }).map(({ body }) => body.code);
  const identity = { user: null, runtime: "hyperty-runtime://a.ex/busy", vouchedBy: "none" };
  for (let id = 1; id <= 2 * MAILBOX; id += 1) {
    node.say(request(hyperty.url, id, { id, body: { value: id, identity } }));
    if (id % 50 === 0) await settle();
  }
  await settle();
  assert.deepEqual(new Set(codes(PEER)), new Set([200]));
  assert.equal(codes(PEER).length, 2 * MAILBOX);
  for (let id = 1; id <= MAILBOX + 10; id += 1) {
    node.say(request(`${hyperty.url}/events`, id, { id, from: `${PEER}-${id % 40}` }));
    if (id % 50 === 0) await settle();
  }
  await settle();
  assert.deepEqual([going.length, drops("overflow")], [EVENTS_WAITING, MAILBOX + 10 - EVENTS_WAITING]);
  await say(request(hyperty.url, "there", { id: 7, from: "hyperty://a.ex/other" }));
  assert.deepEqual(codes("hyperty://a.ex/other"), [200]);
});

test("what is forgotten of silent senders leaves room for what others send", () => {
  const window = new DeduplicationWindow();
  const length = 100_000;
  for (let number = 0; number < (2 * DEDUP_ALL_BYTES) / length; number += 1) {
    const message = { id: 1, type: "create", from: `${number} `.padEnd(length, "x"), to: PEER, body: {} };
    assert.deepEqual([window.isNew(message, 0), window.isNew(message, 0)], [true, false]);
  }
});

test("a request whose signal is aborted is given up, and its receiver is told", async () => {
  const { node, hyperty, runtime, say, ask, drops } = await opened();
  const events = () => node.said({ to: `${PEER}/events` }).map(({ from, type, body }) => [from, type, body.givenUp]);
  const control = new AbortController();
  const asking = hyperty.request(PEER, 1, { signal: control.signal });
  await settle();
  const asked = node.said({ to: PEER }).at(-1);
  control.abort(new Error("enough"));
  await assert.rejects(asking, /enough/);
  await settle();
  assert.deepEqual(events(), [[hyperty.url, "create", asked.id]]);
  await say(reply(asked, { code: 200, value: "late" }));
  assert.equal(drops("late-response"), 1);
  // One that is aborted already is not sent, one that is answered is not given up.
  await assert.rejects(hyperty.request(PEER, 2, { signal: control.signal }), /enough/);
  const later = new AbortController();
  const answered = hyperty.request(PEER, 3, { signal: later.signal });
  await settle();
  assert.equal(node.said({ to: PEER }).at(-1).body.value, 3);
  await say(reply(node.said({ to: PEER }).at(-1), { code: 200, value: "ok" }));
  assert.equal(await answered, "ok");
  later.abort();
  await settle();
  assert.equal(events().length, 1);
  // One without an answer is given up when its time is over; a 408 of the receiver needs nothing.
  const silent = await ask(4);
  await node.clock.turn(REPLY_TIMEOUT + 1);
  assert.equal(silent.outcome.result, 408);
  assert.deepEqual(events().at(-1), [hyperty.url, "create", silent.asked.id]);
  assert.equal(drops("unmatched"), 0);
  assert.equal(runtime.trace.text().match(/"cause":"given-up"/g).length, 1);
});

test("a request that names a time is answered 408 after it, and given up", async () => {
  const { node, hyperty } = await opened();
  const begun = performance.now();
  const asking = hyperty.ask("create", PEER, { value: 1 }, { answerWithin: 0.05 });
  await settle();
  const asked = node.said({ to: PEER }).at(-1);
  assert.equal(asked.body.answerWithin, 0.05);
  const answer = await asking;
  assert.deepEqual([answer.body.code, answer.body.description], [408, "no answer in 0.05 s"]);
  assert.ok(performance.now() - begun > 45);
  await settle();
  assert.deepEqual(node.said({ to: `${PEER}/events` }).map(({ body }) => body.givenUp), [asked.id]);
  const answered = hyperty.request(PEER, 2, { answerWithin: 60 });
  await settle();
  node.say(reply(node.said({ to: PEER }).at(-1), { code: 200, value: "in time" }));
  assert.equal(await answered, "in time");
  for (const wrong of [0, -1, 601, NaN, "5"]) {
    await assert.rejects(hyperty.request(PEER, 3, { answerWithin: wrong }), RangeError, String(wrong));
  }
});

test("a handler has the time that its requester names, or else its code", async () => {
  const signals = [];
  const never = { request: (_message, _hyperty, signal) => (signals.push(signal), new Promise(() => {})) };
  for (const [code, wish] of [[never, 0.05], [{ ...never, answerWithin: 0.05 }, undefined], [{ ...never, answerWithin: 600 }, 0.05]]) {
    const { node, hyperty, say } = await opened(code);
    const asked = request(hyperty.url, 1);
    await say(wish === undefined ? asked : { ...asked, body: { ...asked.body, answerWithin: wish } });
    const begun = performance.now();
    while (!node.said({ type: "response", id: asked.id }).length) {
      assert.ok(performance.now() - begun < 5000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const [{ body }] = node.said({ type: "response", id: asked.id });
    assert.deepEqual([body.code, body.description], [408, "its handler has not ended within 0.05 s"]);
    assert.equal(signals.pop().aborted, true);
  }
  // A time that is none is ignored.
  const { node, hyperty, say } = await opened({ request: ({ body }) => body.value });
  const odd = request(hyperty.url, 1);
  await say({ ...odd, body: { ...odd.body, answerWithin: "soon" } });
  assert.equal(node.said({ type: "response", id: odd.id })[0].body.code, 200);
});

test("the signal of a handler is aborted when its requester, and nobody else, gives up", async () => {
  const signals = [];
  const errors = [];
  const { node, hyperty, say } = await opened({
    request: (message, _, signal) => {
      signals.push(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    event: ({ body }) => errors.push(body.givenUp),
  });
  const asked = request(hyperty.url, 1);
  const giveUp = (from, id) => ({ id: id + 100, type: "create", from, to: `${hyperty.url}/events`, body: { givenUp: asked.id } });
  await say(asked);
  await say(giveUp("hyperty://a.ex/other", 1));
  assert.equal(signals[0].aborted, false);
  await say(giveUp(asked.from, 2), giveUp(asked.from, 3));
  assert.equal(signals[0].aborted, true);
  await settle();
  assert.deepEqual([node.said({ type: "response", id: asked.id }), errors], [[], []]);
  await say({ ...giveUp(asked.from, 4), body: { givenUp: "x" } });
  assert.deepEqual(errors, ["x"]);
});
