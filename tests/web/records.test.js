// The registry of a page: addresses, records and what is followed, with a node that refuses for now,
// and one that has forgotten all.

import assert from "node:assert/strict";
import { test } from "node:test";

import { KEEP_ALIVE_SHARE, REGISTRATION_EXPIRES, RETRY_COOL_DOWN } from "../../web/src/constants.js";
import { openRuntime } from "../../web/src/index.js";
import { linked, REACHABLE, RECORD, REMOTE } from "./fake_links.js";
import { FakeNode, PEER, settle } from "./fake_node.js";

const REGISTRY = "domain://registry.a.ex";
const PATHS = "domain://msg-node.a.ex/sm";

/** A page and a node that answers by type and address, or by type, address and what is named. */
async function opened(answers = {}) {
  const node = new FakeNode();
  const given = { ...answers };
  const named = ({ body }) => body.resources?.[0] ?? body.resource ?? "";
  node.answers = (message) => given[`${message.type} ${message.to} ${named(message)}`] ?? given[`${message.type} ${message.to}`];
  const opening = openRuntime({ domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, connect: node.connect, clock: node.clock });
  await settle();
  const runtime = await opening;
  const done = async (promise) => {
    await settle();
    return promise;
  };
  const about = (type, to, url) => node.said({ type, to }).filter((one) => named(one) === url).length;
  /** Have the node forget the runtime, which gets another session. */
  const forget = async (seconds = 1) => {
    node.control = ({ body: { method } }) => (method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } });
    node.cut();
    await node.clock.turn(seconds);
  };
  const deploy = () => done(runtime.deploy("echo", {}));
  return { node, runtime, given, done, about, forget, deploy };
}

test("an address that is claimed again and refused for now is claimed until that is decided", async () => {
  const { given, about, forget, deploy, node } = await opened();
  const { url } = await deploy();
  given[`subscribe ${PATHS} ${url}`] = { code: 503, retryAfter: 1 };
  await forget(4);
  const claims = about("subscribe", PATHS, url);
  assert.ok(claims >= 3, `claimed ${claims} times`);
  delete given[`subscribe ${PATHS} ${url}`];
  await node.clock.turn(5);
  const last = about("subscribe", PATHS, url);
  await node.clock.turn(60);
  assert.equal(about("subscribe", PATHS, url), last);
});

test("an address that is another's by now, or given back, is claimed no more", async () => {
  const { given, about, forget, deploy, done } = await opened();
  const [first, second] = [await deploy(), await deploy()];
  await done(first.rest());
  given[`subscribe ${PATHS} ${first.url}`] = { code: 403 };
  const next = await deploy();
  assert.notEqual(next.url, first.url);
  await done(second.close());
  const before = [first, second, next].map(({ url }) => about("subscribe", PATHS, url));
  await forget();
  assert.deepEqual([first, second, next].map(({ url }, at) => about("subscribe", PATHS, url) - before[at]), [0, 0, 1]);
});

test("an address that is given back while it is claimed again is claimed no more", async () => {
  const { given, about, forget, deploy, done, node } = await opened();
  const hyperty = await deploy();
  given[`subscribe ${PATHS} ${hyperty.url}`] = { code: 503, retryAfter: 1 };
  await forget(4);
  const closed = hyperty.close();
  await node.clock.turn(60);
  await closed;
  const last = about("subscribe", PATHS, hyperty.url);
  assert.ok(last >= 3, `claimed ${last} times`);
  await node.clock.turn(60);
  assert.equal(about("subscribe", PATHS, hyperty.url), last);
});

test("a record that could not be kept alive is kept alive soon after", async () => {
  const { node, given, about, deploy } = await opened();
  const { url } = await deploy();
  given[`update ${REGISTRY} ${url}`] = { code: 503, retryAfter: 1 };
  await node.clock.turn(REGISTRATION_EXPIRES / KEEP_ALIVE_SHARE + 1);
  assert.equal(about("update", REGISTRY, url), 1);
  given[`update ${REGISTRY} ${url}`] = { code: 200 };
  await node.clock.turn(RETRY_COOL_DOWN + 1);
  assert.equal(about("update", REGISTRY, url), 2);
  await node.clock.turn(REGISTRATION_EXPIRES / KEEP_ALIVE_SHARE - 3 * RETRY_COOL_DOWN);
  assert.equal(about("update", REGISTRY, url), 2);
});

test("what the node does not let be followed is not followed", async () => {
  const followed = `${PEER}/registration`;
  const { given, runtime, about, forget, node, done } = await opened({ [`subscribe ${PATHS} ${PEER}/registration`]: { code: 403 } });
  const seen = [];
  const refused = await done(runtime.follow(PEER, (status) => seen.push(status)).catch(({ code }) => code));
  assert.equal(refused, 403);
  delete given[`subscribe ${PATHS} ${followed}`];
  const before = about("subscribe", PATHS, followed);
  await forget();
  assert.equal(about("subscribe", PATHS, followed), before);
  node.say({ id: 1, type: "update", from: REGISTRY, to: followed, body: { attribute: "status", value: "live" } });
  await settle();
  assert.deepEqual(seen, []);
});

test("of two who follow a record one may leave: the other is told, also by a node that had forgotten", async () => {
  const followed = `${PEER}/registration`;
  const record = (status) => ({ code: 200, value: { url: PEER, status } });
  const { given, runtime, about, forget, node, done } = await opened({ [`read ${REGISTRY} ${PEER}`]: record("live") });
  const [mine, theirs] = [[], []];
  const leave = await done(runtime.follow(PEER, (status) => mine.push(status)));
  const other = await done(runtime.follow(PEER, (status) => theirs.push(status)));
  await done(leave());
  assert.equal(about("unsubscribe", PATHS, followed), 0);
  node.say({ id: 1, type: "update", from: REGISTRY, to: followed, body: { attribute: "status", value: "disconnected" } });
  await settle();
  given[`subscribe ${PATHS} ${followed}`] = { code: 503, retryAfter: 1 };
  given[`read ${REGISTRY} ${PEER}`] = record("live");
  await forget();
  delete given[`subscribe ${PATHS} ${followed}`];
  await node.clock.turn(2 * RETRY_COOL_DOWN);
  assert.deepEqual([mine, theirs], [["live"], ["live", "disconnected", "live"]]);
  await done(other());
  assert.equal(about("unsubscribe", PATHS, followed), 1);
});

test("a record that has changed is read again before a link is used", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: REACHABLE });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
  const following = runtime.follow(PEER, () => {});
  await settle();
  await following;
  const { answers } = node;
  node.answers = (message) => (message.body.resource === PEER ? { code: 200, value: { ...RECORD, runtime: "hyperty-runtime://a.ex/rc" } } : answers(message));
  node.say({ id: 1, type: "update", from: REGISTRY, to: `${PEER}/registration`, body: { attribute: "status", value: "live" } });
  await settle();
  const before = node.said({ to: PEER }).length;
  void echo.ask("create", PEER, { value: 2 });
  await settle();
  assert.deepEqual([node.said({ to: PEER }).length, stubs[0].carried], [before + 1, []]);
});

test("a node that has forgotten the runtime gets the paths of its links, and the others its messages", async () => {
  const { node, stubs, echo } = await linked({ [PEER]: REACHABLE }, true);
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const paths = () => node.said({ type: "subscribe", to: PATHS }).map(({ body }) => body.resources[0]);
  const urls = stubs.map(({ url }) => url);
  assert.deepEqual(paths(), urls);
  node.control = ({ body: { method } }) => (method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "new" } });
  node.cut();
  await node.clock.turn(1);
  assert.deepEqual(paths().slice(urls.length).filter((one) => urls.includes(one)).sort(), [...urls].sort());
  assert.equal(stubs[1].plan.remote, REMOTE);
});
