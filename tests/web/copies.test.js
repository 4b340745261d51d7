// Copies of data objects in a page: what a node brings of an object, and what a hyperty sees of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EARLY_CHANGES, GONE_READS, MAX_JSON_DEPTH, QUIET, REPLY_TIMEOUT, VALUE_BYTES } from "../../web/src/constants.js";
import { PEER, reply, RUNTIME, settle } from "./fake_node.js";
import { MINE, opened, SUBSCRIPTION, URL, whole } from "./object_page.js";

test("a change that comes before the object is applied after it, and the events say what was before", async () => {
  const { node, hyperty, given, change, done, said } = await opened({ [SUBSCRIPTION]: false });
  const observing = hyperty.observe(URL);
  await settle();
  await change(2, "n", 2);
  const [asked] = node.said({ to: SUBSCRIPTION });
  node.say(reply(asked, { code: 200, value: whole(1, { n: 1 }) }));
  const theirs = await done(observing);
  assert.deepEqual([theirs.value, theirs.version, said({ to: URL, type: "read" })], [{ n: 2 }, 2, 0]);
  // A gap, and the object with an early change behind it: two events, each with its own past.
  const seen = [];
  theirs.on("change", ({ path, old, new: now }) => seen.push([path, old, now]));
  given[URL] = { code: 200, value: whole(4, { n: 4 }) };
  await change(5, "n", 5);
  assert.deepEqual(seen, [["", { n: 2 }, { n: 4 }], ["n", 4, 5]]);
});

test("of too many early changes the newest stay", async () => {
  const { node, hyperty, given, change, done } = await opened({ [URL]: false });
  const theirs = await done(hyperty.observe(URL));
  const last = EARLY_CHANGES + 10;
  for (let version = 3; version <= last; version += 1) {
    node.say({ id: 1000 + version, type: "update", from: URL, to: `${URL}/changes`, body: { version, attribute: "n", value: version } });
    if (version % 100 === 0) await settle();
  }
  await settle();
  assert.ok(theirs.isStale);
  given[URL] = { code: 200, value: whole(last - 1, { n: last - 1 }) };
  node.say(reply(node.said({ to: URL, type: "read" })[0], given[URL]));
  await settle();
  assert.deepEqual([theirs.version, theirs.value, theirs.isStale], [last, { n: last }, false]);
  await change(last + 1, "n", 0);
  assert.equal(theirs.version, last + 1);
});

test("a copy that changes would make larger than an object may be has ended", async () => {
  const { hyperty, change, done } = await opened();
  const theirs = await done(hyperty.observe(URL));
  for (let version = 2; version < 6; version += 1) await change(version, `t${version}`, "x".repeat(16_000));
  assert.equal(theirs.gone?.code, 410);
  assert.ok(JSON.stringify(theirs.value).length < 61_440);
});

test("the size of a copy is that of its value: its snapshot, and the objects that a path makes", async () => {
  const most = VALUE_BYTES - 8 * MAX_JSON_DEPTH;
  const deep = Array(MAX_JSON_DEPTH - 1).fill("a").join(".");
  for (const [path, value] of [["t", "x".repeat(8 * MAX_JSON_DEPTH)], [`b.${deep}`, 1]]) {
    const data = { n: Array(4).fill("x".repeat(most / 4 - 5)) };
    const { hyperty, change, done } = await opened({ [SUBSCRIPTION]: { code: 200, value: whole(1, data) } });
    const theirs = await done(hyperty.observe(URL));
    if (path !== "t") await change(2, "s", "x".repeat(4 * MAX_JSON_DEPTH - ',"s":""'.length));
    assert.equal(theirs.gone, null);
    await change(theirs.version + 1, path, value);
    assert.equal(theirs.gone?.code, 410, path);
    assert.ok(JSON.stringify(theirs.value).length <= VALUE_BYTES);
  }
});

test("a copy whose changes replace each other lives on, whatever they are together", async () => {
  const { hyperty, change, done } = await opened();
  const theirs = await done(hyperty.observe(URL));
  for (let version = 2; version < 12; version += 1) await change(version, "t", "x".repeat(16_000));
  assert.deepEqual([theirs.gone, theirs.version, theirs.isStale], [null, 11, false]);
});

test("an object that is not found is looked for again, and is gone after some reads", async () => {
  const { node, hyperty, done, change, said } = await opened({ [URL]: { code: 404 } });
  const theirs = await done(hyperty.observe(URL));
  const waiting = theirs.waitFor(({ n }) => n === 9);
  const ended = [];
  waiting.catch((error) => ended.push(error.code));
  theirs.on("end", (refusal) => ended.push(refusal.code));
  await change(3, "n", 3);
  assert.equal(theirs.gone, null);
  await node.clock.turn(100);
  assert.equal(said({ to: URL, type: "read" }), GONE_READS);
  assert.equal(theirs.gone?.code, 410);
  assert.deepEqual(ended, [410, 410]);
  // It may be back: it is observed again.
  const again = await done(hyperty.observe(URL));
  assert.deepEqual(again.value, { n: 1 });
});

for (const code of [408, 500, 503]) {
  test(`a read that is answered ${code} is made again`, async () => {
    const { node, hyperty, given, done, change } = await opened({ [URL]: { code } });
    const theirs = await done(hyperty.observe(URL));
    await change(3, "n", 3);
    await node.clock.turn(5);
    assert.deepEqual([theirs.gone, theirs.isStale], [null, true]);
    given[URL] = { code: 200, value: whole(3, { n: 3 }) };
    await node.clock.turn(2 * REPLY_TIMEOUT);
    assert.deepEqual([theirs.value, theirs.isStale], [{ n: 3 }, false]);
  });
}

test("after something that is no change a copy reads the object, and follows it", async () => {
  const { node, hyperty, given, say, change, done, said } = await opened();
  const theirs = await done(hyperty.observe(URL));
  const odd = [{ version: "2" }, { version: 0, attribute: "n" }, { version: 2, attribute: 7 }, { version: 2, attribute: "n", operation: "add", value: [1] }];
  for (const [at, body] of odd.entries()) {
    given[URL] = { code: 200, value: whole(at + 2, { n: at }) };
    await say({ body });
    assert.deepEqual([theirs.gone, theirs.isStale], [null, true]);
    await node.clock.turn(2);
    assert.deepEqual([theirs.value, theirs.isStale, said({ to: URL, type: "read" })], [{ n: at }, false, at + 1]);
  }
  await change(odd.length + 2, "n", "on");
  assert.deepEqual(theirs.value, { n: "on" });
});

test("an observer whose subscription is over by a read subscribes again", async () => {
  const { node, hyperty, given, done, said } = await opened({ [URL]: { code: 401 } });
  const theirs = await done(hyperty.observe(URL));
  const before = said({ to: SUBSCRIPTION, type: "subscribe" });
  given[SUBSCRIPTION] = { code: 200, value: whole(7, { n: 7 }) };
  await node.clock.turn(QUIET + 1);
  assert.ok(said({ to: SUBSCRIPTION, type: "subscribe" }) > before);
  assert.deepEqual([theirs.value, theirs.gone], [{ n: 7 }, null]);
});

/** An observer that has asked twice, as its sync manager sees it, and what ended its subscription. */
async function askedTwice() {
  const made = await opened({ [SUBSCRIPTION]: false });
  const { node, hyperty, runtime, said } = made;
  await made.done(runtime.sync());
  const observe = async () => {
    const answering = hyperty.ask("subscribe", `${RUNTIME}/sm`, { resource: URL });
    await settle();
    return { answering, asked: node.said({ to: SUBSCRIPTION, type: "subscribe" }).at(-1) };
  };
  const granted = ({ asked }) => node.say(reply(asked, { code: 200, value: whole(1, { n: 1 }) }));
  const ends = () => said({ type: "unsubscribe", to: SUBSCRIPTION }) + said({ type: "unsubscribe", to: "domain://msg-node.a.ex/sm" });
  return { ...made, observe, granted, ends };
}

test("the late end of an older request takes no newer subscription back", async () => {
  const { node, hyperty, observe, granted, ends } = await askedTwice();
  const [first, second] = [await observe(), await observe()];
  granted(second);
  assert.equal((await second.answering).body.code, 200);
  await node.clock.turn(REPLY_TIMEOUT + 1);
  assert.deepEqual([(await first.answering).body.code, ends()], [408, 0]);
  void hyperty.ask("unsubscribe", `${RUNTIME}/sm`, { resource: URL });
  await settle();
  assert.equal(ends(), 2);
});

test("an expulsion that is older than a request does not end it", async () => {
  const { hyperty, say, observe, granted, ends } = await askedTwice();
  const first = await observe();
  granted(first);
  assert.equal((await first.answering).body.code, 200);
  const second = await observe();
  const expulsion = { type: "unsubscribe", from: SUBSCRIPTION, to: `${RUNTIME}/sm`, body: { resource: URL, observer: hyperty.url } };
  await say(expulsion);
  granted(second);
  assert.deepEqual([(await second.answering).body.code, ends()], [200, 0]);
  await say(expulsion);
  assert.ok(ends() > 0, "a newer one does");
});

test("only the object itself changes a copy, and only its reporter expels an observer", async () => {
  const { node, runtime, hyperty, given, say, change, done } = await opened();
  const theirs = await done(hyperty.observe(URL));
  for (const from of [PEER, `${URL}/other`, `${URL}/changes`, "comm://a.ex/other"]) await change(2, "n", "forged", { from });
  assert.deepEqual(theirs.value, { n: 1 });
  const expel = { type: "unsubscribe", to: hyperty.url, body: { resource: URL } };
  for (const from of ["hyperty://a.ex/other", "hyperty-runtime://a.ex/rc/sm", URL]) {
    const id = await say({ ...expel, from });
    assert.equal(node.said({ type: "response", id })[0]?.body.code, 403, from);
  }
  assert.equal(theirs.gone, null);
  // The object has another reporter by now, as a read says.
  given[URL] = { code: 200, value: whole(3, { n: 3 }, "hyperty://a.ex/heir") };
  await change(3, "n", 3);
  assert.equal(node.said({ type: "response", id: await say({ ...expel, from: PEER }) })[0].body.code, 403);
  await say({ ...expel, from: "hyperty://a.ex/heir" });
  assert.equal(theirs.gone?.code, 403);
  assert.equal(runtime.state, "live");
});

test("a copy is not changed in place, and a listener that fails leaves the others theirs", async (t) => {
  const { hyperty, change, done } = await opened();
  t.mock.method(console, "error", () => {});
  const theirs = await done(hyperty.observe(URL));
  const seen = [];
  theirs.on("change", () => {
    throw new Error("as told");
  });
  theirs.on("change", (one) => seen.push(one.new));
  await change(2, "deep", { list: [{ n: 1 }] });
  assert.deepEqual(seen, [{ list: [{ n: 1 }] }]);
  assert.throws(() => theirs.value.deep.list[0].n++, TypeError);
  assert.throws(() => theirs.value.deep.list.push(2), TypeError);
});

test("who leaves an object is left alone by it: no path, no changes, no children", async () => {
  const { node, hyperty, say, change, done, said } = await opened();
  const theirs = await done(hyperty.observe(URL));
  const child = { type: "create", from: PEER, to: `${URL}/children/resources`, body: { resource: `${PEER}#1`, value: { text: "x" } } };
  await say(child);
  assert.equal(theirs.children.size, 1);
  const seen = [];
  theirs.on("change", () => seen.push("change"));
  theirs.children.on("change", () => seen.push("child"));
  await done(theirs.close());
  await node.clock.turn(1);
  assert.ok(said({ type: "unsubscribe", to: SUBSCRIPTION }), "its reporter is not told");
  assert.ok(node.said({ type: "unsubscribe", to: "domain://msg-node.a.ex/sm" }).some(({ body }) => body.resources.includes(`${URL}/changes`)));
  await change(2, "n", 2);
  await say({ ...child, body: { resource: `${PEER}#2`, value: { text: "y" } } });
  assert.deepEqual([seen, theirs.value, theirs.gone?.code], [[], { n: 1 }, 410]);
  await assert.rejects(theirs.children.create({ text: "z" }), { code: 410 });
});

test("what a hyperty does with a child is shown once, also when the node brings it back", async () => {
  const { node, hyperty, say, done } = await opened({ [`${URL}/children/resources`]: { code: 200 } });
  const theirs = await done(hyperty.observe(URL));
  const seen = [];
  theirs.children.on("change", ({ new: now }) => seen.push(now));
  const child = await done(theirs.children.create({ text: "a" }));
  await done(child.update({ text: "b" }));
  assert.deepEqual(seen, [{ text: "a" }, { text: "b" }]);
  const written = node.said({ to: `${URL}/children/resources` });
  for (const one of written) await say({ ...one, body: { ...one.body, value: { text: "an echo" } } });
  assert.deepEqual([seen.length, child.value], [2, { text: "b" }]);
});

test("a write that is refused is in no value, and a reporter sees who observes", async () => {
  const { node, hyperty, say, done } = await opened();
  node.addresses.push(MINE);
  const mine = await done(hyperty.report("comm", { n: 1 }, { allow: [PEER, "hyperty://a.ex/rest"] }));
  await done(mine.set("n", 2));
  const seen = [];
  mine.on("observer", ({ observer, isThere }) => seen.push([observer, isThere]));
  const joins = (observer, manager) => say({ type: "subscribe", from: `${manager}/sm`, to: `${MINE}/subscription`, body: { source: observer, renews: true } });
  await joins(PEER, "hyperty-runtime://a.ex/rb");
  assert.deepEqual([seen, mine.observers], [[[PEER, true]], [PEER]]);
  await joins("hyperty://a.ex/rest", "hyperty-runtime://a.ex/rc");
  assert.deepEqual(mine.observers, [PEER, "hyperty://a.ex/rest"]);
  void mine.close();
  await settle();
  const setting = mine.set("n", 3);
  setting.catch(() => {});
  await settle();
  await assert.rejects(setting, { name: "Refusal", code: 404 });
  assert.deepEqual([mine.value, mine.version], [{ n: 2 }, 2]);
});

test("children of a window are read in pages, and those that left before are counted", async () => {
  const { node, hyperty, given, say, done } = await opened();
  const to = `${URL}/children/resources`;
  const page = (numbers, counts) => {
    const entries = numbers.map((n) => [`${PEER}#${n}`, { value: n, version: n, place: n, time: 1 }]);
    return { code: 200, value: { childrenObjects: { resources: Object.fromEntries(entries), window: counts } } };
  };
  const pages = { 0: page([1, 2], { created: 3, gone: 0, next: 2 }), 2: page([3], { created: 3, gone: 0 }) };
  const { answers } = node;
  node.answers = (message) => (message.to === URL && message.type === "read" ? pages[message.body.childrenAfter] : answers(message));
  const { childrenObjects, ...bare } = whole(1, {});
  given[SUBSCRIPTION] = { code: 200, value: { ...bare, childrenWindow: { last: 3 } } };
  const { children } = await done(hyperty.observe(URL));
  await node.clock.turn(1);
  const values = () => [...children].map((one) => one.value);
  assert.deepEqual([values(), children.missed], [[1, 2, 3], 0]);
  const missed = [];
  children.on("change", (one) => missed.push(one.missed));
  // What is no report of removed children changes nothing.
  const sign = { count: 0, digest: "0000000000000000" };
  for (const ended of ["x", [7], null]) await say({ to, body: { ...sign, ended } });
  assert.equal(children.size, 3);
  // Five have passed unseen: of eight that are new, three are left.
  pages[0] = page([9, 10, 11], { created: 11, gone: 8 });
  await say({ to, body: { ...sign, count: 3, ended: [], created: 11, gone: 8 } });
  await node.clock.turn(5);
  assert.deepEqual([values(), children.missed, missed], [[9, 10, 11], 5, [5, 0, 0, 0, 0, 0]]);
});

test("an object with an invalid window is none", async () => {
  const { hyperty, given, done } = await opened();
  given[SUBSCRIPTION] = { code: 200, value: { ...whole(1, {}), childrenWindow: { last: 0 } } };
  assert.equal(await done(hyperty.observe(URL).catch(({ code }) => code)), 410);
});
