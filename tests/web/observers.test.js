// The observers' end of a data object in a page: how it asks, renews, leaves and comes back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BUSY_PAUSE, GONE_READS, LEAVE_TRIES, QUIET, RECONNECT_TRIES, REPEAT_LAST, REPLY_TIMEOUT } from "../../web/src/constants.js";
import { PEER, reply, RUNTIME, settle } from "./fake_node.js";
import { MINE, opened, PATHS, SUBSCRIPTION, URL, whole } from "./object_page.js";

const LEAVE = `unsubscribe ${SUBSCRIPTION}`;
const leaves = { type: "unsubscribe", to: SUBSCRIPTION };
const asks = { type: "subscribe", to: SUBSCRIPTION };
const ofPath = (node, type) => node.said({ type, to: PATHS }).filter(({ body }) => body.resources?.includes(`${URL}/changes`));

test("a leave that is refused for now is said again, some times", async () => {
  const { node, hyperty, given, done, said } = await opened({ [LEAVE]: { code: 503, retryAfter: 1 } });
  const first = await done(hyperty.observe(URL));
  const leaving = first.close();
  await node.clock.turn(1.5 * BUSY_PAUSE);
  assert.equal(said(leaves), 2);
  given[LEAVE] = { code: 200 };
  await node.clock.turn(20 * BUSY_PAUSE);
  await leaving;
  assert.equal(said(leaves), 3);
  assert.equal(ofPath(node, "unsubscribe").length, 1);
  given[LEAVE] = { code: 503, retryAfter: 1 };
  const second = await done(hyperty.observe(URL));
  const end = second.close();
  await node.clock.turn(100 * BUSY_PAUSE);
  await end;
  assert.equal(said(leaves), 3 + LEAVE_TRIES);
});

test("a leave that is to be said again is not said of one who observes again", async () => {
  const { node, hyperty, given, done, said } = await opened({ [LEAVE]: { code: 503, retryAfter: 1 } });
  const first = await done(hyperty.observe(URL));
  void first.close();
  await settle();
  const again = hyperty.ask("subscribe", `${RUNTIME}/sm`, { resource: URL });
  await settle();
  assert.equal((await again).body.code, 200);
  given[LEAVE] = { code: 200 };
  await node.clock.turn(20 * BUSY_PAUSE);
  assert.deepEqual([said(leaves), ofPath(node, "unsubscribe")], [1, []]);
});

test("who shares an object with others may go alone, and who is the last closes its path", async () => {
  const { node, hyperty, deployed, done, change } = await opened();
  const other = await deployed("other");
  const [mine, theirs] = [await done(hyperty.observe(URL)), await done(other.observe(URL))];
  let isGone = false;
  const going = hyperty.close().then(() => (isGone = true));
  await settle();
  assert.deepEqual([isGone, ofPath(node, "unsubscribe")], [true, []]);
  await going;
  await change(2, "n", 2);
  assert.deepEqual([mine.value, theirs.value], [{ n: 1 }, { n: 2 }]);
  await done(theirs.close());
  assert.equal(ofPath(node, "unsubscribe").length, 1);
});

test("who observes again while the path is closed waits for that", async () => {
  const { node, hyperty, given, done, said } = await opened();
  given[`unsubscribe ${PATHS}`] = false;
  const first = await done(hyperty.observe(URL));
  void first.close();
  await settle();
  const [closing] = ofPath(node, "unsubscribe");
  let again = null;
  const observing = hyperty.ask("subscribe", `${RUNTIME}/sm`, { resource: URL }).then(({ body }) => (again = body.code));
  await settle();
  assert.deepEqual([again, said(asks), ofPath(node, "subscribe").length], [null, 1, 1]);
  node.say(reply(closing, { code: 200 }));
  await settle();
  await observing;
  assert.deepEqual([again, said(asks), ofPath(node, "subscribe").length], [200, 2, 2]);
});

test("a request that is over without an answer is taken back, also if its observer left before", async () => {
  const { node, runtime, hyperty, done, said } = await opened({ [SUBSCRIPTION]: false });
  await done(runtime.sync());
  const observing = hyperty.ask("subscribe", `${RUNTIME}/sm`, { resource: URL });
  await settle();
  void hyperty.ask("unsubscribe", `${RUNTIME}/sm`, { resource: URL });
  await settle();
  assert.equal(said(leaves), 1);
  await node.clock.turn(REPLY_TIMEOUT + 1);
  assert.deepEqual([(await observing).body.code, said(leaves)], [408, 2]);
});

test("a lease is renewed by the newest version, and again if that is not decided", async () => {
  const grant = (version) => ({ code: 200, lease: 30, value: whole(version, { n: version }) });
  const { node, hyperty, given, change, done, said } = await opened({ [SUBSCRIPTION]: grant(1) });
  const copy = await done(hyperty.observe(URL));
  for (const version of [2, 3, 2]) await change(version, "n", version);
  given[SUBSCRIPTION] = { code: 503, retryAfter: 1 };
  await node.clock.turn(11);
  const renewals = () => node.said(asks).slice(1).map(({ body }) => body.version);
  assert.ok(renewals().length >= 1);
  given[SUBSCRIPTION] = { code: 200, lease: 30, renewed: true };
  await node.clock.turn(8);
  const tried = said(asks);
  assert.deepEqual(renewals(), Array.from({ length: tried - 1 }, () => 3));
  assert.ok(tried >= 3);
  const paths = ofPath(node, "subscribe").length;
  assert.equal(paths, 1);
  given[SUBSCRIPTION] = { ...grant(5), renewed: true };
  await node.clock.turn(11);
  assert.deepEqual([copy.value, ofPath(node, "subscribe").length], [{ n: 5 }, 1]);
  // It was over before: the reporter's end grants it anew, and shows what it is now.
  given[SUBSCRIPTION] = grant(9);
  await node.clock.turn(11);
  assert.deepEqual([copy.value, copy.version], [{ n: 9 }, 9]);
  assert.ok(ofPath(node, "subscribe").length > paths, "the node may have removed the path");
  // It is left: nobody renews it any more.
  await done(copy.close());
  const before = said(asks);
  await node.clock.turn(60);
  assert.equal(said(asks), before);
});

test("when one of two is refused the path is set anew for the other, who hears what it has missed", async () => {
  const { node, hyperty, deployed, given, done, said } = await opened();
  const other = await deployed("other");
  const copy = await done(hyperty.observe(URL));
  node.answers = ({ type, to, body }) => {
    if (to !== SUBSCRIPTION || type !== "subscribe") return given[`${type} ${to}`] ?? given[to];
    return body.source === other.url ? { code: 403, description: "no" } : { code: 200, value: whole(2, { n: 2 }) };
  };
  const refused = await done(other.observe(URL).catch(({ code }) => code));
  await node.clock.turn(1);
  assert.deepEqual([refused, copy.value, copy.gone], [403, { n: 2 }, null]);
  const sources = node.said(asks).map(({ body }) => body.source);
  assert.deepEqual([sources, ofPath(node, "subscribe").length], [[hyperty.url, other.url, hyperty.url], 2]);
  // It is one renewal, and no more.
  await node.clock.turn(10);
  assert.equal(said(asks), 3);
});

test("one more observer of an object asks as one who has nothing of it", async () => {
  const { node, hyperty, deployed, change, done } = await opened();
  const other = await deployed("other");
  await done(hyperty.observe(URL));
  await change(2, "n", 2);
  await done(other.observe(URL));
  assert.deepEqual(node.said(asks).map(({ body }) => [body.source, body.version]), [[hyperty.url, undefined], [other.url, undefined]]);
});

test("an owner that is not back yet is asked again for a while, once for all that ask for that", async () => {
  const { node, hyperty, given, say, done, said } = await opened();
  const copy = await done(hyperty.observe(URL));
  given[SUBSCRIPTION] = { code: 404 };
  const back = { type: "subscribe", from: SUBSCRIPTION, to: `${RUNTIME}/sm`, body: { resource: URL } };
  const ids = [await say(back), await say(back)];
  assert.deepEqual(ids.map((id) => node.said({ type: "response", id })[0].body.value), ids.map(() => [hyperty.url]));
  assert.equal(said(asks), 2);
  await node.clock.turn(10);
  assert.ok(said(asks) <= 6, `asked ${said(asks)} times`);
  given[SUBSCRIPTION] = { code: 200, value: whole(5, { n: 5 }) };
  await node.clock.turn(20);
  assert.deepEqual([copy.value, copy.gone], [{ n: 5 }, null]);
});

test("an object that is missed now and then, and found each time, is not gone", async () => {
  const { node, hyperty, given, change, done } = await opened();
  const copy = await done(hyperty.observe(URL));
  for (let version = 3; version < 3 + 2 * (GONE_READS + 1); version += 2) {
    given[URL] = { code: 404 };
    await change(version, "n", version);
    given[URL] = { code: 200, value: whole(version, { n: version }) };
    await node.clock.turn(5);
    assert.deepEqual([copy.gone, copy.version], [null, version]);
  }
});

test("an observer is told by its reporter's end that it is out, once, and is asked no more", async () => {
  const { node, hyperty, given, say, done, said } = await opened();
  const copy = await done(hyperty.observe(URL));
  const before = said(asks);
  await say({ type: "unsubscribe", from: SUBSCRIPTION, to: `${RUNTIME}/sm`, body: { resource: URL, observer: hyperty.url } });
  assert.equal(copy.gone?.code, 403);
  assert.equal(ofPath(node, "unsubscribe").length, 1);
  given[SUBSCRIPTION] = { code: 200, value: whole(7, { n: 7 }) };
  await say({ type: "subscribe", from: SUBSCRIPTION, to: `${RUNTIME}/sm`, body: { resource: URL } });
  assert.deepEqual([said(asks), copy.value], [before, { n: 1 }]);
});

test("a session that is new gets the path again, and the copy what it missed", async () => {
  const { node, hyperty, given, done, said } = await opened();
  const copy = await done(hyperty.observe(URL));
  node.control = ({ body: { method } }) => (method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } });
  given[SUBSCRIPTION] = { code: 200, value: whole(4, { n: 4 }) };
  node.cut();
  await node.clock.turn(5);
  assert.deepEqual([ofPath(node, "subscribe").length, copy.value, said(asks)], [2, { n: 4 }, 2]);
});

const withoutPath = async () => {
  const page = await opened();
  const { node, hyperty, given, done } = page;
  const copy = await done(hyperty.observe(URL));
  node.control = ({ body: { method } }) => (method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } });
  const { answers } = node;
  const isPath = ({ to, body }) => to === PATHS && body.resources?.includes(`${URL}/changes`);
  node.answers = (message) => (isPath(message) ? { code: 503 } : answers(message));
  given[SUBSCRIPTION] = { code: 200, value: whole(4, { n: 4 }) };
  node.cut();
  return { ...page, copy, answers };
};

test("a path whose request is lost is asked for again before its owner is", async () => {
  const { node, said, copy, answers } = await withoutPath();
  await node.clock.turn(5);
  assert.ok(ofPath(node, "subscribe").length > 2);
  assert.deepEqual([said(asks), copy.value], [1, { n: 1 }]);
  node.answers = answers;
  await node.clock.turn(20);
  assert.deepEqual([said(asks), copy.value], [2, { n: 4 }]);
});

test("a path that the node forgets once more while its owner is asked is set once more", async () => {
  const { node, given, answers } = await withoutPath();
  node.answers = answers;
  given[SUBSCRIPTION] = { code: 503 };
  await node.clock.turn(20);
  const before = ofPath(node, "subscribe").length;
  node.cut();
  await node.clock.turn(20);
  assert.equal(ofPath(node, "subscribe").length, before + 1);
});

test("without a path the owner is asked at last, and the path again later", async () => {
  const { node, said, copy, answers } = await withoutPath();
  await node.clock.turn(60);
  assert.deepEqual([said(asks), copy.value, ofPath(node, "subscribe").length], [2, { n: 4 }, 1 + RECONNECT_TRIES]);
  node.answers = answers;
  await node.clock.turn(REPEAT_LAST);
  assert.deepEqual([said(asks), ofPath(node, "subscribe").length], [3, 2 + RECONNECT_TRIES]);
  await node.clock.turn(REPEAT_LAST);
  assert.equal(ofPath(node, "subscribe").length, 2 + RECONNECT_TRIES);
});

for (const code of [403, 404, 413]) {
  test(`who is refused with ${code} gets no copy, and may ask again`, async () => {
    const { node, hyperty, given, done } = await opened({ [SUBSCRIPTION]: { code, description: "no" } });
    const refused = await done(hyperty.observe(URL).catch((error) => error));
    assert.deepEqual([refused.name, refused.code, refused.reason], ["Refusal", code, "no"]);
    assert.equal(ofPath(node, "unsubscribe").length, 1);
    given[SUBSCRIPTION] = { code: 200, value: whole(3, { n: 3 }) };
    assert.deepEqual((await done(hyperty.observe(URL))).value, { n: 3 });
  });
}

test("an observer whose subscription is over goes on by what it has, and does not begin anew", async () => {
  const { node, hyperty, change, done } = await opened({ [URL]: { code: 401 } });
  const copy = await done(hyperty.observe(URL));
  await change(2, "n", 2);
  await node.clock.turn(QUIET + 1);
  const versions = node.said(asks).map(({ body }) => body.version);
  assert.ok(versions.length >= 2);
  assert.deepEqual(versions, [undefined, ...versions.slice(1).map(() => 2)]);
  assert.equal(copy.gone, null);
});

test("a reporter observes its own object without asking itself, and nobody else does", async () => {
  const { node, runtime, say, done } = await opened();
  const asked = [];
  const deploying = runtime.deploy("reporter", { subscribe: ({ observer }) => void asked.push(observer) });
  const reporter = await done(deploying);
  node.addresses.push(MINE);
  const mine = await done(reporter.report("comm", { n: 1 }));
  const copy = await done(reporter.observe(MINE));
  assert.deepEqual([copy.value, asked], [{ n: 1 }, []]);
  await done(mine.set("n", 2));
  assert.deepEqual(copy.value, { n: 2 });
  await say({ type: "subscribe", from: "hyperty-runtime://a.ex/rb/sm", to: `${MINE}/subscription`, body: { source: PEER } });
  assert.deepEqual(asked, [PEER]);
});
