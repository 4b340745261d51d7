// Direct links of a runtime: what its registry does with stubs, records and peers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CLAIM_BURST, ERROR_WINDOW, FORGERIES, HELD_MESSAGES, MAX_LIST, PROOF_TIMEOUT, REGISTRATION_EXPIRES, REPLY_TIMEOUT } from "../../web/src/constants.js";
import { replyTo } from "../../web/src/message.js";
import { Followers } from "../../web/src/p2p/changes.js";
import { DESCRIPTOR, linked, REACHABLE, RECORD, REMOTE } from "./fake_links.js";
import { PEER, RUNTIME, settle } from "./fake_node.js";
import { spoilt } from "./odd.js";

const HERE = `${RUNTIME}/registry`;
const THERE = `${REMOTE}/registry`;

/** Set up a link that is live, whose peer lists some addresses. */
async function listing(records, listed) {
  const made = await linked({ [PEER]: REACHABLE, ...records });
  const { node, echo, stubs, runtime } = made;
  void echo.ask("create", PEER, { value: "first" });
  await settle();
  const [stub] = stubs;
  for (const value of ["created", "in-progress", "live"]) stub.report(value);
  await settle();
  const [asked] = stub.registries;
  assert.deepEqual([asked.to, asked.type, asked.body.resources], [THERE, "subscribe", [`${THERE}/changes`]]);
  stub.bring(replyTo(asked, 200, { value: listed }));
  await settle();
  await settle();
  const [{ entities }] = runtime.registry.links.entries;
  const readOf = (url) => node.said({ type: "read" }).filter(({ body }) => body.resource === url).length;
  let number = 100;
  /** Bring a report of the peer's registry, or of somebody else. */
  const report = async (body, from = THERE, to = `${THERE}/changes`) => {
    stub.bring({ id: (number += 1), type: "update", from, to, body });
    await settle();
  };
  /** Ask in the name of the peer's registry, or of somebody else; return the code of the answer. */
  const ask = async (type, resources, from = THERE) => {
    stub.bring({ id: (number += 1), type, from, to: HERE, body: { resources } });
    await settle();
    return stub.messages.findLast((one) => one.type === "response" && one.id === number)?.body;
  };
  return { ...made, stub, entities, readOf, report, ask };
}

const near = (name, runtime = REMOTE) => {
  const url = `hyperty://a.ex/${name}`;
  return { [url]: { ...RECORD, url, runtime } };
};

const toPeer = (node) => node.said({ to: PEER }).map(({ body }) => body.value);

test("a message goes by the node until the link that its receiver's record names is live", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: REACHABLE });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const [stub] = stubs;
  assert.deepEqual(stub.plan, { remote: REMOTE, handler: REACHABLE.p2pHandler, descriptor: DESCRIPTOR });
  const paths = node.said({ to: "domain://msg-node.a.ex/sm" }).map(({ type, body }) => [type, body.resources[0]]);
  assert.deepEqual(paths, [["subscribe", stub.url]]);
  for (const value of ["created", "in-progress"]) stub.report(value);
  void echo.ask("create", PEER, { value: 2 });
  await settle();
  assert.deepEqual([toPeer(node), stub.carried], [[1, 2], []]);
  stub.report("live");
  const asking = echo.request(PEER, 3);
  await settle();
  assert.deepEqual([toPeer(node), stub.carried], [[1, 2], [[PEER, "create", 3]]]);
  stub.bring(replyTo(stub.messages.at(-1), 200, { value: "by the link" }));
  assert.equal(await asking, "by the link");
  assert.deepEqual(runtime.registry.links.entries.map(({ status, url }) => [status, url]), [["live", stub.url]]);
});

test("a request of the peer over its link is answered over it", async () => {
  const { node, stubs, echo } = await linked({ [PEER]: REACHABLE });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
  stubs[0].bring({ id: 5, type: "create", from: PEER, to: echo.url, body: { value: 7 } });
  await settle();
  assert.deepEqual(stubs[0].carried, [[PEER, "response", 7]]);
  assert.equal(node.said({ to: PEER, type: "response" }).length, 0);
});

test("a peer sends only from what its record says is its own", async () => {
  const other = "hyperty://a.ex/other";
  const records = { [PEER]: REACHABLE, [other]: { ...RECORD, url: other, runtime: "hyperty-runtime://a.ex/rc" } };
  const { runtime, stubs, echo } = await linked(records);
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
  for (const from of [other, "hyperty://a.ex/nobody", echo.url, RUNTIME, stubs[0].url, "domain://registry.a.ex", `${REMOTE}/sm`]) {
    stubs[0].bring({ id: 5, type: "create", from, to: echo.url, body: { value: from } });
  }
  await settle();
  await settle();
  assert.deepEqual(Object.fromEntries(runtime.counters.drops), { "unknown-source": 6 });
  assert.deepEqual(stubs[0].carried.map(([to, , value]) => [to, value]).filter(([, value]) => value), [[`${REMOTE}/sm`, `${REMOTE}/sm`]]);
});

test("a peer that goes on to send in the name of others loses its link, for a while", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: REACHABLE });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
  const forge = (from) => stubs[0].bring({ id: 5, type: "create", from, to: echo.url, body: {} });
  // A record that is missing is nobody's forgery.
  for (let nth = 0; nth <= FORGERIES; nth += 1) forge("hyperty://a.ex/nobody");
  for (let nth = 1; nth < FORGERIES; nth += 1) forge([echo.url, RUNTIME, "domain://registry.a.ex"][nth % 3]);
  await settle();
  await settle();
  assert.deepEqual(runtime.registry.links.entries.map(({ status }) => status), ["live"]);
  forge(echo.url);
  await settle();
  assert.deepEqual([runtime.registry.links.entries, stubs.map(({ isClosed }) => isClosed)], [[], [true]]);
  void echo.ask("create", PEER, { value: 2 });
  await settle();
  assert.deepEqual([stubs.length, toPeer(node)], [1, [1, 2]]);
});

test("nothing counts that a peer brings after its forgeries have ended its link, nor is it linked to soon", async () => {
  const received = [];
  const request = ({ body }) => received.push(body.value);
  const { node, stubs, echo } = await linked({ [PEER]: REACHABLE }, false, { request });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const [stub] = stubs;
  for (const value of ["created", "in-progress", "live"]) stub.report(value);
  const bring = (id, from, value) => stub.bring({ id, type: "create", from, to: echo.url, body: { value } });
  bring(5, PEER, "before");
  const answering = echo.ask("create", PEER, { value: 2 });
  await settle();
  const asked = stub.messages.findLast(({ to, type }) => to === PEER && type === "create");
  assert.equal(asked.body.value, 2);
  for (let nth = 0; nth < FORGERIES; nth += 1) bring(10 + nth, echo.url, "forged");
  await settle();
  assert.ok(stub.isClosed);
  stub.bring(replyTo(asked, 200, { value: "late" }));
  bring(30, PEER, "after");
  bring(31, `${REMOTE}/sm`, "after");
  await node.clock.turn(2 * REPLY_TIMEOUT);
  assert.notEqual((await answering).body.code, 200);
  assert.deepEqual(received, ["before"]);
  const want = async () => {
    void echo.ask("create", PEER, { value: 3 });
    await settle();
    return stubs.length;
  };
  await node.clock.turn(ERROR_WINDOW - 2 * REPLY_TIMEOUT - 2);
  assert.equal(await want(), 1);
  await node.clock.turn(4);
  assert.equal(await want(), 2);
});

test("a peer whose forgeries have ended its link gets none for a while either when it asks for one", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: RECORD }, true);
  const [handler] = stubs;
  const invited = async (nth, ...values) => {
    for (const value of values) handler.report(value, `${handler.url}/pc/${nth}`);
    await settle();
    return runtime.registry.links.entries.map(({ status }) => status);
  };
  assert.deepEqual(await invited(1, "created", "in-progress", "live"), ["live"]);
  for (let nth = 0; nth < FORGERIES; nth += 1) {
    handler.bring({ id: 10 + nth, type: "create", from: echo.url, to: echo.url, body: {} }, `${handler.url}/pc/1`);
  }
  await settle();
  assert.deepEqual(handler.orders, ["disconnect"]);
  for (const nth of [2, 3]) {
    await node.clock.turn((ERROR_WINDOW - 2) / 2);
    assert.deepEqual(await invited(nth, "created"), []);
    assert.equal(handler.orders.length, nth, "it is not told to end it");
    assert.deepEqual(await invited(nth, "failed"), []);
  }
  await node.clock.turn(4);
  assert.deepEqual(await invited(4, "created", "in-progress", "live"), ["live"]);
});

test("messages of a link keep their order while the record of a sender is read", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: REACHABLE });
  const late = "hyperty://a.ex/late";
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
  const usual = node.answers;
  node.answers = (message) => (message.body.resource === late ? false : usual(message));
  const heard = [];
  const deploying = runtime.deploy("sink", { event: ({ body }) => heard.push(body.value) });
  await settle();
  const { url } = await deploying;
  for (const [at, from] of [PEER, late, PEER].entries()) {
    stubs[0].bring({ id: at + 1, type: "create", from, to: `${url}/events`, body: { value: at } });
  }
  await settle();
  assert.deepEqual(heard, [0]);
  const asked = node.said({ to: "domain://registry.a.ex", type: "read" }).at(-1);
  node.say(replyTo(asked, 200, { value: { ...RECORD, url: late } }));
  await settle();
  assert.deepEqual(heard, [0, 1, 2]);
});

test("a lost link is connected again, and when that fails messages go by the node", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: REACHABLE });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const [stub] = stubs;
  for (const value of ["created", "in-progress", "live", "disconnected"]) stub.report(value);
  void echo.ask("create", PEER, { value: 2 });
  await settle();
  assert.deepEqual([stub.orders, toPeer(node)], [["connect"], [1, 2]]);
  for (const value of ["live", "disconnected"]) stub.report(value);
  await node.clock.turn(60);
  assert.equal(stub.orders.filter((one) => one === "connect").length, 6);
  assert.equal(stub.orders.at(-1), "disconnect");
  assert.ok(stub.isClosed);
  assert.equal(runtime.bus.isListenedTo(`${stub.url}/status`), false);
  const paths = node.said({ to: "domain://msg-node.a.ex/sm" }).map(({ type }) => type);
  assert.deepEqual(paths, ["subscribe", "unsubscribe"]);
});

test("no link is set up to what takes none, or is not asked for", async () => {
  const { stubs, node, echo } = await linked({ [PEER]: RECORD });
  void echo.ask("create", PEER, { value: 1 });
  void echo.ask("create", "hyperty://a.ex/none", { value: 1 });
  void echo.ask("create", "hyperty://a.ex/other", { value: 1, p2p: false });
  echo.send("hyperty://a.ex/third", 1);
  await settle();
  const read = node.said({ to: "domain://registry.a.ex", type: "read" }).map(({ body }) => body.resource);
  assert.deepEqual([stubs, read], [[], [`/hyperty/runtime/${RUNTIME}`, PEER, "hyperty://a.ex/none"]]);
});

test("a handler is reachable, its record says so, and its link is a way once its listeners stand", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: RECORD }, true);
  const [handler] = stubs;
  assert.equal(handler.url, `${RUNTIME}/p2phandler/1`);
  const [{ body }] = node.said({ to: "domain://registry.a.ex", type: "create" });
  assert.deepEqual([body.value.p2pHandler, body.value.p2pRequester], [handler.url, DESCRIPTOR]);
  const link = `${handler.url}/pc/1`;
  for (const value of ["created", "in-progress", "live"]) handler.report(value, link);
  await settle();
  const listeners = handler.messages.filter(({ to, type }) => to === handler.url && type === "subscribe");
  assert.deepEqual(listeners.map(({ body: { resources } }) => resources), [[link]]);
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  void echo.ask("create", PEER, { value: 2 });
  await settle();
  assert.deepEqual([toPeer(node), handler.carried], [[1], [[PEER, "create", 2]]]);
  const closing = runtime.close();
  await node.clock.turn(5);
  await closing;
  assert.equal(handler.orders.at(-1), "disconnect");
  assert.ok(handler.isClosed);
});

for (const role of ["handler", "requester"]) {
  test(`a runtime that ends disconnects a ${role}'s link before its row and its listener go`, async () => {
    const isHandler = role === "handler";
    const { node, runtime, stubs, echo } = await linked({ [PEER]: isHandler ? RECORD : REACHABLE }, isHandler);
    void echo.ask("create", PEER, { value: 1 });
    await settle();
    const [stub] = stubs;
    const link = isHandler ? `${stub.url}/pc/1` : undefined;
    for (const value of ["created", "in-progress", "live"]) stub.report(value, link);
    await settle();
    // As a stub does it: it reports the end, and then that the order is obeyed.
    const take = stub.take.bind(stub);
    stub.take = (message) => {
      if (message.body.method === "disconnect") stub.report("disconnected", link);
      return take(message);
    };
    const lines = () => runtime.trace.text().trim().split("\n").map((line) => JSON.parse(line));
    const begun = lines().length;
    const closing = runtime.close();
    await node.clock.turn(5);
    await closing;
    const ended = lines().slice(begun).flatMap(({ op, table, key, to }) => {
      if (op === "del" && (table === "p2p" || (table === "listeners" && key === (link ?? stub.url)))) return [table];
      return op === "submit" && to === `${stub.url}/status` ? ["disconnected"] : [];
    });
    assert.equal(ended[0], "disconnected");
    assert.deepEqual(new Set(ended.slice(1)), new Set(["p2p", "listeners"]));
  });
}

test("a runtime that ends while it reads a record ends the search for a link, too", async () => {
  const { node, runtime, echo } = await linked({});
  const usual = node.answers;
  node.answers = (message) => (message.body.resource === PEER ? false : usual(message));
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const closing = runtime.close();
  await node.clock.turn(5);
  await closing;
  const steps = runtime.trace.text().trim().split("\n").map((line) => JSON.parse(line));
  const search = steps.filter(({ machine, key }) => machine === "resolve_job" && key === `link|${PEER}`);
  assert.deepEqual(search.map((step) => step.new), ["lookup", "query", "failed"]);
});

test("the row of a runtime can be read by stubs", async () => {
  const { node, runtime, stubs } = await linked({}, true);
  const [handler] = stubs;
  const asked = () => handler.port.ask("read", `${RUNTIME}/registry`, { resource: REMOTE });
  assert.equal((await asked()).body.code, 404);
  handler.report("created", `${handler.url}/pc/1`);
  const { value } = (await asked()).body;
  assert.deepEqual([value.role, value.status, value.link], ["handler", "created", `${handler.url}/pc/1`]);
  const own = (await runtime.ask("read", `${RUNTIME}/registry`, { resource: REMOTE })).body.code;
  node.say({ id: 70, type: "read", from: PEER, to: `${RUNTIME}/registry`, body: { resource: REMOTE } });
  await settle();
  const strange = node.said({ type: "response", to: PEER }).at(-1).body.code;
  assert.deepEqual([own, strange], [200, 403]);
  assert.equal(runtime.registry.links.entries.length, 1);
});

test("a handler gets the row of a runtime when our own request has yielded, and everybody else at once", async () => {
  // Of two requests that cross, that of the smaller address stays.
  const small = "hyperty-runtime://a.ex/r0";
  const record = { ...REACHABLE, runtime: small, p2pHandler: `${small}/p2phandler/1` };
  const { runtime, stubs, echo } = await linked({ [PEER]: record }, true);
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const [handler, requester] = stubs;
  const report = async (stub, type, value, more = {}) => {
    stub.port.publish(type, `${stub.url}/status`, { value, resource: small, ...more });
    await settle();
  };
  await report(requester, "create", "created");
  await report(requester, "update", "in-progress");
  await report(handler, "create", "created", { link: `${handler.url}/pc/1` });
  assert.deepEqual(requester.orders, ["yield"]);
  const rows = {};
  for (const [name, asker] of Object.entries({ handler: handler.port, requester: requester.port, runtime })) {
    void asker.ask("read", HERE, { resource: small }).then(({ body }) => (rows[name] = [body.value.role, body.value.link]));
  }
  await settle();
  const theirs = ["handler", `${handler.url}/pc/1`];
  assert.deepEqual(rows, { requester: ["requester", requester.url], runtime: theirs });
  await report(requester, "update", "yielding");
  assert.deepEqual(rows.handler, theirs);
});

test("a record with odd values leads to no link, or to one; messages go on", async () => {
  const records = Object.fromEntries([...spoilt(REACHABLE)].map((record, at) => [`${PEER}/${at}`.replace("peer/", "peer-"), record]));
  const { node, stubs, echo } = await linked({ ...records, [PEER]: REACHABLE });
  for (const [url, record] of Object.entries(records)) {
    if (record.url === PEER) record.url = url;
    void echo.ask("create", url, { value: url });
    await settle();
    assert.equal(node.said({ to: url }).length, 1, url);
  }
  // What is known of each ends in its time.
  await node.clock.turn(4000);
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const stub = stubs.filter(({ plan }) => plan?.remote === REMOTE).at(-1);
  for (const value of ["created", "in-progress", "live"]) stub.report(value);
  const bodies = [...spoilt({ value: 1, resource: `${PEER}#1`, version: 1, source: PEER, attribute: "n" })];
  for (const [at, body] of bodies.entries()) {
    for (const to of [echo.url, "comm://a.ex/theirs/changes", "comm://a.ex/theirs/children/resources", `${RUNTIME}/sm`, `${RUNTIME}/registry`]) {
      stub.bring({ id: at + 1, type: "update", from: PEER, to, body });
    }
    await node.clock.turn(61);
  }
  const asking = echo.request(PEER, 3);
  await settle();
  const by = stub.messages.findLast(({ body }) => body.value === 3);
  if (by) stub.bring(replyTo(by, 200, { value: "there" }));
  else node.say(replyTo(node.said({ to: PEER }).at(-1), 200, { value: "there" }));
  assert.equal(await asking, "there");
});

test("what a peer lists goes by its link without more ado, once a record says the same", async () => {
  const mine = near("mine");
  const [url] = Object.keys(mine);
  const { echo, entities, stub, readOf, node } = await listing(mine, [PEER, url]);
  assert.deepEqual([[...entities].sort(), readOf(PEER), readOf(url)], [[url, PEER].sort(), 1, 1]);
  void echo.ask("create", url, { value: 1 });
  await settle();
  assert.deepEqual([stub.carried, node.said({ to: url }), readOf(url)], [[[url, "create", 1]], [], 1]);
});

test("a list of what lives elsewhere draws no message to its link", async () => {
  const others = near("others", "hyperty-runtime://a.ex/rc");
  const foreign = { "hyperty://b.ex/1": { ...RECORD, url: "hyperty://b.ex/1" } };
  const urls = [...Object.keys({ ...others, ...foreign }), "hyperty://a.ex/none", REMOTE, "hyperty-runtime://a.ex/rc"];
  const { echo, entities, stub, node, readOf } = await listing({ ...others, ...foreign }, urls);
  assert.deepEqual([[...entities], readOf("hyperty://b.ex/1"), readOf(urls[0])], [[PEER], 0, 1]);
  void echo.ask("create", urls[0], { value: 1 });
  await settle();
  assert.deepEqual([stub.carried, node.said({ to: urls[0] }).length], [[], 1]);
});

test("the records of a long list are read a few at a time", async () => {
  const names = Array.from({ length: 3 * CLAIM_BURST }, (_, at) => `many-${at}`);
  const records = Object.assign({}, ...names.map((name) => near(name)));
  const { node, entities, report } = await listing(records, Object.keys(records));
  assert.equal(entities.size, 1 + CLAIM_BURST);
  await report({ value: Object.keys(records).slice(-1), operation: "remove" });
  await node.clock.turn(60);
  assert.equal(entities.size, names.length);
});

test("what came to a peer and left it is heard; of nobody but its registry", async () => {
  const [mine, next] = [near("mine"), near("next")];
  const [[url], [other]] = [Object.keys(mine), Object.keys(next)];
  const { echo, entities, report, readOf, node, runtime } = await listing({ ...mine, ...next }, [url]);
  await report({ value: [other], operation: "add", attributeType: "array" });
  assert.deepEqual([...entities].sort(), [url, other, PEER].sort());
  await report({ value: [url], operation: "remove", attributeType: "array" });
  assert.deepEqual([...entities].sort(), [other, PEER].sort());
  delete mine[url];
  node.answers = ({ to, type }) => (to === "domain://registry.a.ex" && type === "read" ? { code: 404 } : undefined);
  void echo.ask("create", url, { value: 1 });
  await settle();
  assert.deepEqual([readOf(url), node.said({ to: url }).length], [2, 1]);
  await report({ value: [PEER], operation: "remove" }, PEER);
  await report({ value: [PEER], operation: "remove" }, `${REMOTE}/sm`);
  assert.deepEqual(runtime.counters.drops.get("forged-status"), 2);
  for (const body of [{ value: "nothing", operation: "remove" }, { value: [PEER] }, { value: [PEER], operation: "forget" }]) await report(body);
  assert.deepEqual([runtime.counters.drops.get("malformed"), [...entities].sort()], [3, [other, PEER].sort()]);
});

test("a peer hears what lives here, and what comes and goes; nobody else does", async () => {
  const { ask, echo, runtime, stub } = await listing({}, []);
  const said = () => stub.registries.filter(({ type }) => type === "update").map(({ to, body }) => [to, body.operation, body.value]);
  const all = [`${HERE}/changes`];
  assert.equal((await ask("subscribe", all, PEER)).code, 403);
  assert.equal((await ask("subscribe", all, `${REMOTE}/sm`)).code, 403);
  assert.equal((await runtime.ask("subscribe", HERE, { resources: all })).body.code, 403);
  assert.equal((await ask("subscribe", [HERE])).code, 404);
  const silent = runtime.deploy("silent", {});
  await settle();
  await silent;
  assert.deepEqual(said(), []);
  const { code, value } = await ask("subscribe", all);
  assert.deepEqual([code, value], [200, [echo.url, (await silent).url]]);
  const deploying = runtime.deploy("next", {});
  await settle();
  const next = await deploying;
  const closing = next.close();
  await settle();
  await closing;
  assert.deepEqual(said(), [[all[0], "add", [next.url]], [all[0], "remove", [next.url]]]);
  assert.equal((await ask("unsubscribe", all)).code, 200);
  void echo.close();
  await settle();
  assert.equal(said().length, 2);
});

test("a list is refused that is too long for one message", async () => {
  const asked = [];
  const port = { step: ({ new: state }) => asked.push(state), answer: ({ body }) => asked.push(body.code) };
  const followers = new Followers(RUNTIME, port, () => Array.from({ length: MAX_LIST + 1 }, (_, at) => `hyperty://a.ex/${at}`));
  followers.linkIs({ remote: REMOTE, link: "one" });
  const request = { id: 1, type: "subscribe", from: THERE, to: HERE, body: {} };
  followers.asked(request, REMOTE, "one", 0);
  assert.deepEqual(asked, ["requested", "refused", 413]);
  assert.equal(followers.isHeard, false);
});

test("without a list, messages go by the link all the same", async () => {
  for (const body of [{ code: 403 }, { code: 200, value: "nothing" }, { code: 200, value: [7] }]) {
    const { stubs, echo, node, runtime } = await linked({ [PEER]: REACHABLE });
    void echo.ask("create", PEER, { value: "first" });
    await settle();
    for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
    await settle();
    stubs[0].bring(replyTo(stubs[0].registries[0], body.code, body));
    await settle();
    void echo.ask("create", PEER, { value: 2 });
    await settle();
    assert.deepEqual([stubs[0].carried, toPeer(node)], [[[PEER, "create", 2]], ["first"]]);
    assert.equal(runtime.bus.isListenedTo(`${THERE}/changes`), false);
  }
});

test("a peer that no link leads to is tried less and less often, until one is live", async () => {
  const { node, stubs, echo } = await linked({ [PEER]: REACHABLE });
  // As the record of a window that was killed, until its session ends.
  const wanted = async (seconds) => {
    for (let second = 0; second < seconds; second += 1) {
      echo.send(PEER, second);
      void echo.ask("create", PEER, { value: second });
      await node.clock.turn(1);
    }
  };
  for (let second = 0; second < 600; second += 1) {
    await wanted(1);
    for (const stub of stubs.filter(({ isClosed }) => !isClosed)) {
      stub.report("created");
      stub.report("failed");
    }
  }
  assert.ok(stubs.length >= 6 && stubs.length <= 8, String(stubs.length));
  await node.clock.turn(600);
  await wanted(2);
  const stub = stubs.at(-1);
  for (const value of ["created", "in-progress", "live", "disconnected", "failed"]) stub.report(value);
  await settle();
  const before = stubs.length;
  await wanted(8);
  assert.equal(stubs.length, before + 1);
});

test("forgeries count for a while only, and nothing of a link counts that has ended", async () => {
  const received = [];
  const { node, runtime, stubs, echo } = await linked({ [PEER]: RECORD }, true, { request: ({ body }) => received.push(body.value) });
  const [handler] = stubs;
  const link = `${handler.url}/pc/1`;
  for (const value of ["created", "in-progress", "live"]) handler.report(value, link);
  await settle();
  const bring = (id, from, value) => handler.bring({ id, type: "create", from, to: echo.url, body: { value } }, link);
  for (let nth = 1; nth < FORGERIES; nth += 1) bring(nth, echo.url, "forged");
  await node.clock.turn(ERROR_WINDOW + 1);
  for (let nth = 1; nth < FORGERIES; nth += 1) bring(nth + 100, echo.url, "forged");
  bring(300, PEER, "by the link");
  await settle();
  assert.deepEqual([received, handler.orders], [["by the link"], []]);
  handler.report("failed", link);
  await settle();
  bring(301, PEER, "after");
  await settle();
  assert.deepEqual([received, runtime.registry.links.entries], [["by the link"], []]);
});

test("while the record of a sender is read, so many messages of its link wait, and not for long", async () => {
  const { node, runtime, stubs, echo } = await linked({ [PEER]: REACHABLE });
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  for (const value of ["created", "in-progress", "live"]) stubs[0].report(value);
  await settle();
  const usual = node.answers;
  node.answers = (message) => (message.body.resource === "hyperty://a.ex/late" ? false : usual(message));
  const bring = (id, from) => stubs[0].bring({ id, type: "read", from, to: echo.url, body: {} });
  bring(1, "hyperty://a.ex/late");
  for (let nth = 1; nth <= HELD_MESSAGES; nth += 1) bring(nth, PEER);
  await settle();
  assert.equal(runtime.counters.drops.get("overflow"), 1);
  await node.clock.turn(PROOF_TIMEOUT + 1);
  assert.equal(runtime.counters.drops.get("unknown-source"), 1);
  const answered = stubs[0].messages.filter(({ type, to }) => type === "response" && to === PEER);
  assert.equal(answered.length, HELD_MESSAGES - 1);
});

test("a stub that does not reconnect its link is given up, and its peer's record is read anew", async () => {
  const { node, stubs, echo } = await linked({ [PEER]: REACHABLE });
  const reads = () => node.said({ type: "read" }).filter(({ body }) => body.resource === PEER).length;
  void echo.ask("create", PEER, { value: 1 });
  await settle();
  const [stub] = stubs;
  for (const value of ["created", "in-progress", "live"]) stub.report(value);
  await settle();
  stub.take = (message) => {
    stub.messages.push(message);
    if (message.to === stub.url && message.type !== "response") queueMicrotask(() => stub.port.post(replyTo(message, 500)));
    return true;
  };
  stub.report("disconnected");
  await settle();
  assert.deepEqual([stub.orders[0], stub.isClosed], ["connect", true]);
  const before = reads();
  void echo.ask("create", PEER, { value: 2 });
  await settle();
  assert.deepEqual([toPeer(node), reads()], [[1, 2], before + 1]);
});

test("no record is believed for longer than a registration lasts", async () => {
  const { node, echo } = await linked({ [PEER]: { ...RECORD, expires: 1e9 } });
  const reads = () => node.said({ type: "read" }).filter(({ body }) => body.resource === PEER).length;
  for (const [pause, count] of [[0, 1], [REGISTRATION_EXPIRES - 1, 1], [2, 2]]) {
    await node.clock.turn(pause);
    void echo.ask("create", PEER, { value: 1 });
    await settle();
    assert.equal(reads(), count);
  }
});
