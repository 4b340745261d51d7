// The reporter's end of a data object in a page: what it sets up, repeats, and takes down again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ENDED_AT_ONCE, LEASE, MAX_REPEATED_ASKS, REPEAT_LAST, REPLY_TIMEOUT, WINDOW_PAUSE } from "../../web/src/constants.js";
import { PEER, reply, RUNTIME, settle } from "./fake_node.js";
import { MINE, opened, PATHS } from "./object_page.js";

const REGISTRY = "domain://registry.a.ex";
const ALLOCATION = "domain://msg-node.a.ex/address-allocation";
const MANAGER = "hyperty-runtime://a.ex/rb/sm";
const OTHER = "hyperty://a.ex/other";

/** A page whose hyperty reports an object, if the node lets it. */
async function reporting(answers, options = { allow: [PEER, OTHER] }) {
  const made = await opened(answers);
  const { node, hyperty, say } = made;
  node.addresses.push(MINE);
  const outcome = {};
  const reports = hyperty.report("comm", { n: 1 }, options).then((mine) => Object.assign(outcome, { mine }), (error) => Object.assign(outcome, { error }));
  await settle();
  const freed = () => node.said({ type: "delete", to: ALLOCATION }).flatMap(({ body }) => body.childrenResources);
  const joins = (observer = PEER, more = {}, from = MANAGER) =>
    say({ type: "subscribe", from, to: `${MINE}/subscription`, body: { source: observer, renews: true, ...more } });
  const answer = (id) => node.said({ type: "response", id }).at(-1)?.body;
  const changes = () => node.said({ to: `${MINE}/changes` });
  return { ...made, outcome, reports, freed, joins, answer, changes };
}

test("an object without a path to it is none: its address is given back", async () => {
  const { outcome, freed } = await reporting({ [`subscribe ${PATHS}`]: { code: 403, description: "no" } });
  assert.equal(outcome.error?.code, 403);
  assert.deepEqual(freed(), [MINE]);
});

test("an object that is not registered is none: its path and its address are given back", async () => {
  const { node, given, hyperty, freed, outcome, done } = await reporting({});
  assert.equal(outcome.mine.url, MINE);
  given[`create ${REGISTRY}`] = { code: 413, description: "full" };
  node.addresses.push(`${MINE}2`);
  const refused = await done(hyperty.report("comm", {}).catch((error) => error.code));
  assert.equal(refused, 413);
  assert.deepEqual(freed(), [`${MINE}2`]);
  const closed = node.said({ type: "unsubscribe", to: PATHS }).flatMap(({ body }) => body.resources);
  assert.ok(closed.includes(`${MINE}2/subscription`) && !closed.includes(MINE));
});

test("a session that is new gets the object once, and until it has it", async () => {
  const { node, given } = await reporting({});
  const claims = () => node.said({ type: "subscribe", to: PATHS }).filter(({ body }) => body.resources.join() === MINE).length;
  const paths = () => node.said({ type: "subscribe", to: PATHS }).filter(({ body }) => body.resources.includes(`${MINE}/subscription`)).length;
  node.control = ({ body: { method } }) => (method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } });
  node.cut();
  await node.clock.turn(1);
  const [claimed, had] = [claims(), paths()];
  assert.ok(claimed >= 1 && had === 2);
  await node.clock.turn(60);
  assert.deepEqual([claims(), paths()], [claimed, had]);
  // The next one does not let it for a while.
  given[`subscribe ${PATHS}`] = { code: 503, retryAfter: 1 };
  node.cut();
  await node.clock.turn(20);
  delete given[`subscribe ${PATHS}`];
  await node.clock.turn(60);
  assert.equal(paths(), had + 1);
});

test("a session that is new does not get an object that is being deleted", async () => {
  const { node, outcome, joins } = await reporting({});
  const paths = () => node.said({ type: "subscribe", to: PATHS }).filter(({ body }) => body.resources.includes(`${MINE}/subscription`)).length;
  await joins();
  void outcome.mine.close();
  await settle();
  const had = paths();
  node.control = ({ body: { method } }) => (method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } });
  node.cut();
  await node.clock.turn(1);
  assert.equal(paths(), had);
});

test("two invitations of one hyperty are one message, and both hear the answer", async () => {
  const { node, outcome } = await reporting({});
  const heard = [];
  for (const nth of [1, 2]) void outcome.mine.invite(OTHER).then(() => heard.push(nth), ({ code }) => heard.push(code));
  await settle();
  const sent = node.said({ type: "create", to: OTHER });
  assert.equal(sent.length, 1);
  node.say(reply(sent[0], { code: 200 }));
  await settle();
  assert.deepEqual(heard, [1, 2]);
  // The next one is a message of its own, and is refused when the object goes.
  outcome.mine.invite(OTHER).catch(({ code }) => heard.push(code));
  await settle();
  assert.equal(node.said({ type: "create", to: OTHER }).length, 2);
  void outcome.mine.close();
  await settle();
  assert.deepEqual(heard, [1, 2, 404]);
});

test("of an observer that asks again and again some requests wait for the reporter, and no more", async () => {
  const made = await opened();
  const { node, runtime, say, done } = made;
  let decide;
  const deploying = runtime.deploy("careful", { subscribe: () => new Promise((resolve) => (decide = resolve)) });
  const careful = await done(deploying);
  node.addresses.push(MINE);
  const mine = await done(careful.report("comm", { n: 1 }));
  const ids = [];
  for (let nth = 0; nth <= MAX_REPEATED_ASKS; nth += 1) {
    ids.push(await say({ type: "subscribe", from: MANAGER, to: `${MINE}/subscription`, body: { source: PEER } }));
  }
  const codes = () => ids.map((id) => node.said({ type: "response", id })[0]?.body.code);
  assert.deepEqual(codes(), [...Array(MAX_REPEATED_ASKS).fill(undefined), 413]);
  decide();
  await settle();
  assert.deepEqual([codes().slice(0, -1), mine.observers], [Array(MAX_REPEATED_ASKS).fill(200), [PEER]]);
});

test("the last change is published again, less and less often, while somebody observes", async () => {
  const { node, outcome, joins, done, changes } = await reporting({});
  await joins();
  const { mine } = outcome;
  await done(mine.set("n", 2));
  await node.clock.turn(4 * REPEAT_LAST);
  const versions = changes().map(({ body }) => [body.version, body.value]);
  assert.ok(versions.length >= 4 && versions.length <= 12, String(versions.length));
  assert.deepEqual(new Set(versions.map(String)), new Set(["2,2"]));
  // Nobody is there any more.
  await node.clock.turn(LEASE);
  assert.deepEqual(mine.observers, []);
  const before = changes().length;
  await node.clock.turn(4 * REPEAT_LAST);
  assert.equal(changes().length, before);
});

test("who has observed gets what is written after it left its place, too, and a lease that is renewed lasts", async () => {
  const { node, outcome, joins, answer, done, changes } = await reporting({});
  const { mine } = outcome;
  await done(mine.set("n", 2));
  assert.equal(changes().length, 0, "nobody has ever observed it");
  assert.equal(answer(await joins()).lease, LEASE);
  await node.clock.turn(LEASE - 10);
  assert.deepEqual(answer(await joins(PEER, { version: 2 })).renewed, true);
  await node.clock.turn(20);
  assert.deepEqual(mine.observers, [PEER]);
  await node.clock.turn(LEASE);
  assert.deepEqual(mine.observers, []);
  const before = changes().length;
  await done(mine.set("n", 3));
  assert.equal(changes().length, before + 1, "an observer whose lease was lost by mistake still listens");
});

test("an object that is deleted is asked about no more, and its address may be another's", async () => {
  const { node, outcome, hyperty, freed, joins, answer, done, changes, given } = await reporting({});
  await joins();
  await done(outcome.mine.set("n", 2));
  const closing = outcome.mine.close();
  await settle();
  const [gone] = node.said({ type: "delete", to: `${MINE}/changes` });
  assert.equal(answer(await joins(OTHER)).code, 404);
  node.say(reply(gone, { code: 200, source: MANAGER.slice(0, -3) }));
  await done(closing);
  assert.deepEqual(freed(), [MINE]);
  const before = changes().length;
  await node.clock.turn(2 * LEASE);
  assert.equal(changes().length, before);
  node.addresses.push(MINE);
  given[`create ${REGISTRY}`] = { code: 200 };
  const again = await done(hyperty.report("comm", { n: 7 }, { allow: [PEER] }));
  assert.equal(answer(await joins()).value.version, 1);
  await done(again.set("n", 8));
  assert.deepEqual(changes().at(-1).body.version, 2);
});

test("all requests that wait when an object is deleted are answered, and a second deletion is refused", async () => {
  const { node, runtime, say, done } = await opened();
  const careful = await done(runtime.deploy("careful", { subscribe: () => new Promise(() => {}) }));
  node.addresses.push(MINE);
  await done(careful.report("comm", { n: 1 }, { allow: [OTHER] }));
  const joins = (source) => say({ type: "subscribe", from: MANAGER, to: `${MINE}/subscription`, body: { source } });
  const ids = [await joins(PEER), await joins(PEER)];
  await joins(OTHER);
  const answers = [];
  const remove = () => careful.ask("delete", `${RUNTIME}/sm`, { resource: MINE }).then(({ body }) => answers.push(body.code));
  const deleting = [remove(), remove()];
  await settle();
  const codes = ids.map((id) => node.said({ type: "response", id }).map(({ body }) => body.code));
  assert.deepEqual([codes, answers], [[[404], [404]], [404]]);
  const gone = node.said({ type: "delete", to: `${MINE}/changes` });
  assert.equal(gone.length, 1);
  node.say(reply(gone[0], { code: 200, source: MANAGER.slice(0, -3) }));
  await done(Promise.all(deleting));
  assert.deepEqual(answers, [404, 200]);
});

test("a deleted object whose observers do not answer is gone when their time is over", async () => {
  const { node, outcome, freed, joins } = await reporting({});
  await joins();
  let isClosed = false;
  void outcome.mine.close().then(() => (isClosed = true));
  await node.clock.turn(REPLY_TIMEOUT - 1);
  assert.deepEqual([isClosed, freed()], [false, []]);
  await node.clock.turn(2);
  assert.deepEqual([isClosed, freed()], [true, [MINE]]);
});

test("only observers read an object, and an expelled one is cut off", async () => {
  const { node, outcome, say, joins, answer, done } = await reporting({});
  const reads = (from, body = {}) => say({ type: "read", from, to: MINE, body });
  assert.equal(answer(await reads("hyperty://a.ex/nobody")).code, 401);
  await joins();
  assert.deepEqual(answer(await reads(PEER)).value.data, { n: 1 });
  assert.deepEqual(answer(await reads(PEER, { attribute: "n" })), { code: 200, value: 1, version: 1, via: answer(await reads(PEER)).via });
  assert.equal(answer(await reads(PEER, { attribute: "none" })).code, 404);
  await done(outcome.mine.expel(PEER));
  await settle();
  assert.equal(answer(await reads(PEER)).code, 401);
  const cut = node.said({ type: "unsubscribe" }).filter(({ body }) => body.observer === PEER).map(({ to }) => to);
  assert.deepEqual(cut.sort(), [PATHS, MANAGER].sort());
  // A renewal does not bring it back, and a request is the reporter's to decide.
  assert.equal(answer(await joins(PEER, { version: 1 })).code, 403);
});

test("who writes children as an observer is reported, who does not observe is refused", async () => {
  const { node, outcome, say, joins, answer } = await reporting({});
  const to = `${MINE}/children/resources`;
  const child = (from, nth, value = { text: String(nth) }) => say({ type: "create", from, to, body: { resource: `${from}#${nth}`, value } });
  assert.equal(answer(await child(PEER, 1)).code, 403);
  await joins();
  const seen = [];
  outcome.mine.children.on("change", ({ id }) => seen.push(id));
  const said = await child(PEER, 1);
  assert.deepEqual([answer(said).code, seen], [200, [`${PEER}#1`]]);
  // A sign of what there is follows, so that a lost one is missed.
  const signs = () => node.said({ type: "update", to }).filter(({ body }) => "digest" in body);
  await node.clock.turn(REPEAT_LAST);
  assert.ok(signs().length >= 1);
  assert.equal(signs().at(-1).body.count, 1);
  assert.equal(outcome.mine.children.size, 1);
  const { url, version } = outcome.mine;
  assert.deepEqual([url, version, RUNTIME], [MINE, 1, RUNTIME]);
});

test("the oldest children leave the window of an object, and observers are told a moment later", async () => {
  const { node, outcome, done, joins, say, answer } = await reporting({}, { allow: [PEER], children: { last: 3, seconds: 100 } });
  const { children } = outcome.mine;
  await joins();
  const seen = [];
  children.on("change", ({ old, new: now, missed }) => seen.push([old, now, missed]));
  for (const n of [1, 2, 3, 4, 5]) await done(children.create(n));
  const reports = () => node.said({ type: "update", to: `${MINE}/children/resources` }).map(({ body }) => body).filter((body) => "ended" in body);
  assert.deepEqual([children.size, reports()], [5, []]);
  await node.clock.turn(WINDOW_PAUSE);
  const { ended, count, created, gone } = reports().at(-1);
  assert.deepEqual([ended.length, count, created, gone, [...children].map((one) => one.value)], [2, 3, 5, 2, [3, 4, 5]]);
  assert.deepEqual(seen.slice(5), [[1, null, 0], [2, null, 0]]);
  const read = async (childrenAfter) => answer(await say({ type: "read", from: PEER, to: MINE, body: { childrenAfter } }));
  const { value } = await read(4);
  assert.deepEqual(Object.values(value.childrenObjects.resources).map((one) => [one.value, one.place]), [[5, 5]]);
  assert.deepEqual(value.childrenObjects.window, { created: 5, gone: 2 });
  assert.equal((await read(-1)).code, 400);
  await node.clock.turn(101);
  assert.deepEqual([children.size, reports().flatMap((body) => body.ended).length], [0, 5]);
  for (let n = 0; n < ENDED_AT_ONCE + 10; n += 1) await done(children.create(n));
  assert.equal(reports().at(-1).ended.length, ENDED_AT_ONCE);
});

test("the reporter deletes a child of anyone, for good, and nobody else does", async () => {
  const { node, hyperty, outcome, done, joins, say, answer, deployed } = await reporting({});
  const { children } = outcome.mine;
  await joins();
  const to = `${MINE}/children/resources`;
  const says = async (type, more = {}) => answer(await say({ type, from: PEER, to, body: { resource: `${PEER}#1`, ...more } }))?.code;
  assert.equal(await says("create", { value: "rude" }), 200);
  const other = await deployed("other");
  const asks = (who) => done(who.ask("delete", `${RUNTIME}/sm`, { resource: MINE, child: `${PEER}#1` }));
  assert.equal((await asks(other)).body.code, 403);
  await done(children.get(`${PEER}#1`).delete());
  assert.equal(children.size, 0);
  const { ended } = node.said({ type: "update", to }).at(-1).body;
  assert.deepEqual(ended, [`${PEER}#1`]);
  assert.equal((await asks(hyperty)).body.code, 404);
  assert.equal(await says("create", { value: "again" }), 409);
  await assert.rejects(children.change("delete", `${PEER}#1`), { code: 404 });
});

test("a window out of bounds is refused where it is written", async () => {
  const { hyperty, done } = await opened();
  for (const children of [{ last: 0 }, { last: 1001 }, { last: true }, { bytes: 16383 }, { seconds: 1.5 }, 5]) {
    assert.equal(await done(hyperty.report("comm", {}, { children }).catch(({ code }) => code)), 400);
  }
});
