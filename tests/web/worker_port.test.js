// A Worker that has its port in its hands, and means harm: what it says, word by word. The page, its
// other hyperties, its objects and its session must not suffer, and nothing of the Worker may be
// left when it has ended. What is known here is docs/browser.md and the form of messages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_ADDRESS, MAX_SUBSCRIPTIONS } from "../../web/src/constants.js";
import { openRuntime, Refusal } from "../../web/src/index.js";
import { readLine } from "../../web/src/message.js";
import "../../web/src/more.js";
import { FakeNode, PEER, RUNTIME, settle } from "./fake_node.js";
import { spoilt } from "./odd.js";

const MANAGER = `${RUNTIME}/sm`;
const NODE = "domain://msg-node.a.ex";
const REGISTRY = "domain://registry.a.ex";
const OBJECT = "comm://a.ex/mine";
const SCHEMA = "hyperty-catalogue://catalogue.a.ex/.well-known/dataschema/Communication";

/** Whoever is in the Worker: it has the port, and no module of ours. */
class Harm {
  heard = [];
  #id = 0;

  constructor() {
    Harm.last = this;
  }

  postMessage({ port, url, id }) {
    Object.assign(this, { port, url });
    this.#id = id;
    port.onmessage = ({ data }) => {
      this.heard.push(data);
      // It lives.
      if (data.do === "beat") port.postMessage(data);
      if (data.do === "deliver") port.postMessage({ do: "taken" });
    };
    port.postMessage({ do: "started" });
  }

  terminate() {
    this.port?.close();
  }

  /** Write a message, and return the code of the answer; null: there is none. */
  async say(type, to, body, from = this.url) {
    const id = (this.#id += 2);
    this.port.postMessage({ do: "post", text: JSON.stringify({ id, type, from, to, body }) });
    // At the rate that it has.
    await this.clock.turn(0.001);
    return this.answer(id)?.body.code ?? null;
  }

  answer(id = this.#id) {
    const answers = this.heard.filter((one) => one.do === "answer" && one.isFinal).map(({ text }) => JSON.parse(text));
    return answers.find((one) => one.id === id) ?? null;
  }

  /** What was delivered to an address. */
  delivered(to) {
    return this.heard.filter((one) => one.do === "deliver").map(({ text }) => JSON.parse(text)).filter((one) => one.to === to);
  }
}

globalThis.Worker = Harm;

/** A page with a hyperty of its own, an object of that, and the Worker. */
async function attacked(t, code = {}) {
  const node = new FakeNode();
  node.addresses.push("hyperty://a.ex/honest", OBJECT, "hyperty://a.ex/harm");
  const until = async (promise) => {
    await settle();
    return promise;
  };
  const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, worker: "about:blank" };
  const runtime = await until(openRuntime({ ...options, connect: node.connect, clock: node.clock }));
  const honest = await until(runtime.deploy("honest", code));
  const object = await until(honest.report("comm", { n: 0 }));
  const ended = [];
  await until(runtime.deploy("harm", new Blob(["any"]), { onEnded: (why) => ended.push(why) }));
  const harm = Object.assign(Harm.last, { clock: node.clock });
  t.after(async () => {
    void runtime.close();
    await node.clock.turn(20);
    // Whatever a Worker has said, the node hears messages.
    for (const line of node.frames.flatMap((frame) => frame.split("\n"))) {
      assert.ok(!("error" in readLine(line)), line);
    }
  });
  return { node, runtime, honest, object, harm, ended, until };
}

const drops = (runtime) => Object.fromEntries(runtime.counters.drops);

test("words that are none end the Worker, and cost the page nothing", async (t) => {
  const { runtime } = await attacked(t);
  const sparse = [];
  sparse.length = 2 ** 32 - 1;
  const cycle = [];
  cycle.push(cycle);
  const words = [
    ...[null, 7, "failed", [], new Map(), { do: { do: "post" } }, { do: "post", text: ["{}"] }, { do: "posted" }],
    ...[{ do: "failed", why: sparse }, { do: "failed", why: { toString: 1, valueOf: 1 } }, { do: "failed", why: cycle }],
    ...[{ do: "failed" }, { do: "taken" }, { do: "beat" }, { do: "started" }, { do: "start" }, { do: "credit", count: 9 }],
  ];
  for (const [number, word] of words.entries()) {
    const whys = [];
    const deploying = runtime.deploy("other", new Blob(["any"]), { onEnded: (why) => whys.push(why) });
    await settle();
    await deploying;
    const { port1: passedOn } = new MessageChannel();
    const begun = performance.now();
    Harm.last.port.postMessage(word, [passedOn]);
    await settle();
    assert.equal(whys.length, 1, `word ${number}`);
    assert.equal(typeof whys[0], "string");
    assert.ok(performance.now() - begun < 10_000, `word ${number}`);
  }
  assert.equal(runtime.hyperties.length, 2);
});

test("of what it reports and observes nothing is left, whatever part of its address it used", async (t) => {
  const { node, runtime, harm } = await attacked(t);
  node.addresses.push("comm://a.ex/one", "comm://a.ex/two");
  const theirs = "comm://a.ex/theirs";
  node.answers = ({ to }) => (to === `${theirs}/subscription` ? { code: 200, value: { url: theirs, version: 1, data: {} } } : undefined);
  for (const from of [harm.url, `${harm.url}/part`]) {
    assert.equal(await harm.say("create", MANAGER, { schema: SCHEMA, value: { data: {} } }, from), 200);
    assert.equal(await harm.say("subscribe", MANAGER, { resource: theirs }, from), 200);
  }
  harm.port.postMessage({ do: "failed", why: "it is over" });
  await settle();
  const freed = node.said({ type: "delete", to: `${NODE}/address-allocation` }).flatMap(({ body }) => body.childrenResources);
  assert.deepEqual(freed.sort(), ["comm://a.ex/one", "comm://a.ex/two", harm.url].sort());
  const left = node.said({ type: "unsubscribe", to: `${theirs}/subscription` }).map(({ body }) => body.source);
  assert.deepEqual(left.sort(), [harm.url, `${harm.url}/part`]);
  assert.deepEqual(runtime.hyperties.map(({ name }) => name), ["honest"]);
});

test("it hears nothing of an object before its reporter has let it in", async (t) => {
  let decide;
  const deciding = new Promise((resolve) => (decide = resolve));
  const { node, object, harm } = await attacked(t, {
    async subscribe({ observer }) {
      if (observer === PEER) return;
      await deciding;
      throw new Refusal(403, "no");
    },
  });
  node.say({ id: 1, type: "subscribe", from: "hyperty-runtime://a.ex/rb/sm", to: `${OBJECT}/subscription`, body: { source: PEER } });
  await settle();
  const asking = harm.say("subscribe", MANAGER, { resource: OBJECT });
  await settle();
  void object.set("secret", 1);
  node.say({ id: 1, type: "create", from: PEER, to: `${OBJECT}/children/resources`, body: { resource: `${PEER}#1`, value: 1 } });
  await asking;
  decide();
  await settle();
  assert.equal(harm.answer().body.code, 403);
  assert.deepEqual(harm.heard.filter((one) => one.do === "deliver"), []);
  assert.deepEqual([object.value, object.observers], [{ n: 0, secret: 1 }, [PEER]]);
});

const NO_ADDRESS = [
  ...["", "x", "comm:", "comm://", "comm://a.ex/o|x", "comm://a.ex//", "comm://a.ex/../o", "comm://ä/o", "__proto__"],
  ...["comm://a.ex/ o", "comm://a.ex/o\n{}", `comm://a.ex/${"o".repeat(MAX_ADDRESS)}`, 7, null, [], {}, [OBJECT], { toString: 1 }],
];

test("what is no address is refused, goes nowhere and leaves nothing", async (t) => {
  const { node, runtime, harm } = await attacked(t);
  node.addresses.push("comm://a.ex/one");
  assert.equal(await harm.say("create", MANAGER, { schema: SCHEMA, value: { data: {} } }), 200);
  const mine = "comm://a.ex/one";
  const before = node.messages.length;
  for (const odd of NO_ADDRESS) {
    const asked = [
      ["subscribe", { resource: odd }], ["unsubscribe", { resource: odd }], ["delete", { resource: odd }],
      ["update", { resource: odd, attribute: "n", value: 1 }], ["create", { resource: odd, observer: PEER }],
      ["create", { resource: mine, observer: odd }], ["unsubscribe", { resource: mine, observer: odd }],
      ["create", { resource: mine, schema: SCHEMA, value: {}, authorise: [odd] }],
      ["create", { resource: mine, schema: SCHEMA, value: {}, authorise: "x" }],
      ["create", { schema: typeof odd === "string" ? "" : odd, value: { data: {} } }],
      ["create", { schema: SCHEMA, value: { data: {} }, allow: [odd] }],
    ];
    for (const [type, body] of asked) {
      const code = await harm.say(type, MANAGER, body);
      assert.ok(code >= 400 || type === "unsubscribe", `${type} ${JSON.stringify(body).slice(-100)}: ${code}`);
    }
  }
  assert.deepEqual(node.messages.slice(before), []);
  assert.equal(runtime.state, "live");
});

test("it does nothing to what the session of its page has, and ends neither that nor records of others", async (t) => {
  const { node, runtime, honest, harm } = await attacked(t);
  const before = node.messages.length;
  const record = { url: honest.url, runtime: RUNTIME, status: "live" };
  const asked = [
    ["execute", `${NODE}/session`, { method: "close", params: {} }],
    ["delete", `${NODE}/address-allocation`, { childrenResources: [honest.url, OBJECT] }],
    ["create", `${NODE}/address-allocation`, { scheme: "comm", value: { number: 10 } }],
    ["create", `${NODE}/object-address-allocation`, { scheme: "comm", value: { number: 10 } }],
    ["unsubscribe", `${NODE}/sm`, { resources: [OBJECT, `${OBJECT}/subscription`] }],
    ["subscribe", `${NODE}/sm`, { resources: ["comm://a.ex/theirs/changes"] }],
    ["unsubscribe", "domain://msg-node.b.ex/sm", { resources: ["comm://b.ex/o/changes"] }],
    ["update", REGISTRY, { resource: honest.url, attribute: "status", value: "disconnected" }],
    ["create", REGISTRY, { value: record }], ["delete", REGISTRY, { resource: honest.url }],
    ["subscribe", `${RUNTIME}/registry`, { resources: [`${NODE}/registration`] }],
    ["create", `${RUNTIME}/address-allocation`, { scheme: "comm", value: { number: 1 } }],
    ["execute", `${RUNTIME}/protostub/1`, { method: "disconnect", params: [] }],
  ];
  for (const [type, to, body] of asked) {
    const code = await harm.say(type, to, body);
    assert.ok(code === 403 || (code === 400 && to.startsWith(RUNTIME)), `${type} ${to}: ${code}`);
  }
  assert.deepEqual(node.messages.slice(before), []);
  assert.equal(runtime.state, "live");
  // To search, and to call devices, is free to all: no session loses by it.
  assert.equal(await harm.say("execute", `${NODE}/push`, { value: "lunch" }), 200);
  assert.equal(await harm.say("read", REGISTRY, { resource: honest.url }), 200);
});

test("it answers for nobody, and in the name of nobody", async (t) => {
  const { node, runtime, honest, object, harm } = await attacked(t);
  const asking = honest.request(PEER, 1);
  await settle();
  const [{ id }] = node.said({ from: honest.url, to: PEER });
  const lies = [PEER, honest.url, OBJECT, `${OBJECT}/changes`, `${OBJECT}/subscription`, MANAGER, RUNTIME, `${NODE}/sm`, harm.url];
  for (const from of lies) {
    for (const to of [honest.url, MANAGER, OBJECT]) {
      harm.port.postMessage({ do: "post", text: JSON.stringify({ id, type: "response", from, to, body: { code: 200, value: "a lie", source: RUNTIME } }) });
      await settle();
    }
  }
  node.say({ id, type: "response", from: PEER, to: honest.url, body: { code: 200, value: "so it is" } });
  assert.equal(await asking, "so it is");
  const events = [
    [PEER, "update", `${OBJECT}/changes`, { version: 2, attribute: "n", value: 1 }],
    [OBJECT, "update", `${OBJECT}/observers`, { value: [harm.url], operation: "add", version: 1 }],
    [`${OBJECT}/subscription`, "delete", `${OBJECT}/changes`, {}],
    [MANAGER, "unsubscribe", honest.url, { resource: OBJECT }], [MANAGER, "update", honest.url, { resource: OBJECT }],
    [harm.url, "update", `${OBJECT}/changes`, { version: 2, attribute: "n", value: 1 }],
    [harm.url, "update", `${OBJECT}/observers`, { value: [harm.url], operation: "add", version: 1 }],
    [harm.url, "delete", `${OBJECT}/changes`, {}], [harm.url, "forward", OBJECT, { message: {} }],
    [harm.url, "create", `${OBJECT}/children/resources`, { resource: `${honest.url}#1`, value: 1 }],
    [harm.url, "create", `${OBJECT}/children/resources`, { resource: `${harm.url}#1`, value: 1 }],
  ];
  for (const [from, type, to, body] of events) await harm.say(type, to, body, from);
  assert.deepEqual([object.value, object.version, object.observers, object.children.size], [{ n: 0 }, 1, [], 0]);
  assert.equal(runtime.state, "live");
  assert.ok(drops(runtime)["unknown-source"] > 20);
});

const PATHS = ["__proto__.polluted", "constructor.prototype.polluted", "toString", "a.__proto__.polluted", "0", "length", "a.".repeat(30)];
const POISON = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "toString": 1}');

test("names of prototypes are names like any other, in bodies, paths and values", async (t) => {
  const { node, harm } = await attacked(t);
  node.addresses.push("comm://a.ex/one");
  assert.equal(await harm.say("create", MANAGER, { schema: SCHEMA, value: { ...POISON, data: POISON } }), 200);
  for (const attribute of PATHS) {
    for (const more of [{ value: 1 }, { value: POISON }, { value: [1], attributeType: "array", operation: "add" }]) {
      await harm.say("update", MANAGER, { resource: "comm://a.ex/one", attribute, ...more });
    }
    await harm.say("delete", MANAGER, { resource: "comm://a.ex/one", attribute });
  }
  await harm.say("create", MANAGER, POISON);
  await harm.say("create", PEER, POISON);
  for (const key of ["__proto__", "constructor", "toString"]) await harm.say("create", MANAGER, { schema: `x/${key}`, value: {} });
  assert.equal({}.polluted, undefined);
  assert.equal([].polluted, undefined);
  assert.equal(await harm.say("read", "comm://a.ex/one", {}), 200);
});

test("text that is no message, or too much of one, is counted and refused", async (t) => {
  const { runtime, harm, ended } = await attacked(t);
  const deep = (open, close) => `${open.repeat(40_000)}${close.repeat(40_000)}`;
  const head = `"type":"create","from":"${harm.url}","to":"${PEER}"`;
  const texts = [
    ...["", "[]", "null", "{", "\u0000", `{"id":9,${head}}`, `{"id":9,${head},"body":${deep('{"a":', "}")}1}`],
    `{"id":9,${head},"body":{"a":${deep("[", "]")}}}`, `{"id":9,${head},"body":{"a":[${"0,".repeat(100_000)}0]}}`,
    ...[`{"id":-1,${head},"body":{}}`, `{"id":1e400,${head},"body":{}}`, `{"id":9,${head},"body":{"a":"\\ud800"}}`],
    `{"id":9,${head},"body":{${Array.from({ length: 20_000 }, (_, at) => `"${at}":0`).join()}}}`,
    ...["x".repeat(10_000_000), `{"id":9,"__proto__":${head}}`, `{"id":9,"type":"create","from":["${harm.url}"],"to":{},"body":[]}`],
  ];
  for (const text of texts) harm.port.postMessage({ do: "post", text });
  await settle();
  assert.deepEqual(drops(runtime), { malformed: texts.length });
  assert.deepEqual(ended, []);
});

test("who has asked it hears at once that its answer is malformed, or too large", async (t) => {
  const { runtime, honest, harm } = await attacked(t);
  const ends = [];
  for (const value of ["\"\\ud83d\"", `"${"x".repeat(100_000)}"`]) {
    void honest.ask("read", harm.url, {}).then(({ body }) => ends.push([body.code, /malformed/.test(body.description)]));
    await settle();
    const { id } = harm.delivered(harm.url).at(-1);
    const text = `{"id":${id},"type":"response","from":"${harm.url}","to":"${honest.url}","body":{"code":200,"value":${value}}}`;
    harm.port.postMessage({ do: "post", text });
    await settle();
  }
  assert.deepEqual([ends, drops(runtime)], [[[502, true], [502, true]], { malformed: 2 }]);
});

test("its objects are so many that others have room for theirs, and their end gives the room back", async (t) => {
  const { node, runtime, honest, object, harm, until } = await attacked(t);
  const urls = () => node.said({ type: "create", to: REGISTRY }).map(({ body }) => body.value.url).filter((url) => url.startsWith("comm"));
  node.answers = ({ to, type }) => {
    if (to === `${NODE}/address-allocation` && type === "create") {
      return { code: 200, value: { allocated: [`comm://a.ex/o${(node.allocated += 1)}`] } };
    }
    const url = to.match(/^(.*)\/subscription$/)?.[1];
    return url?.startsWith("comm://a.ex/theirs") ? { code: 200, value: { url, version: 1, data: {} } } : undefined;
  };
  const filled = async (type, bodyOf) => {
    for (let count = 0; count < 1000; count += 1) {
      const code = await harm.say(type, MANAGER, bodyOf(count));
      if (code === 413) return count;
      assert.equal(code, 200);
    }
    return Infinity;
  };
  const most = await filled("create", () => ({ schema: SCHEMA, value: { data: {} } }));
  assert.equal(most, Math.floor(MAX_SUBSCRIPTIONS / 6 / 2));
  assert.equal(await harm.say("subscribe", MANAGER, { resource: "comm://a.ex/theirs" }), 413);
  const another = await until(honest.report("comm", { n: 1 }));
  await until(another.close());
  assert.equal(await harm.say("delete", MANAGER, { resource: urls()[1] }), 200);
  assert.equal(await filled("subscribe", (count) => ({ resource: `comm://a.ex/theirs${count}` })), 1);
  assert.equal(await harm.say("unsubscribe", MANAGER, { resource: "comm://a.ex/theirs0" }), 200);
  node.answers = ({ to }) => (to === `${NODE}/sm` ? { code: 413 } : undefined);
  for (let count = 0; count < 3; count += 1) {
    assert.equal(await harm.say("create", MANAGER, { schema: SCHEMA, value: { data: {} } }), 413);
  }
  node.answers = () => undefined;
  node.addresses.push("comm://a.ex/last");
  assert.equal(await harm.say("create", MANAGER, { schema: SCHEMA, value: { data: {} } }), 200);
  assert.deepEqual([runtime.hyperties.length, object.version], [2, 1]);
});

test("odd values at every place of what it asks for are answered, and harm nobody", async (t) => {
  const { node, runtime, honest, object, harm, ended } = await attacked(t);
  node.answers = ({ to }) => (to === PEER ? { code: 200, value: "here" } : undefined);
  assert.equal(await harm.say("create", MANAGER, { schema: SCHEMA, value: { data: {} } }), 200);
  const mine = node.said({ type: "create", to: REGISTRY }).at(-1).body.value.url;
  const asked = [
    ["create", MANAGER, { schema: SCHEMA, value: { data: {}, name: "n", resources: ["x"] }, allow: [PEER], publicObservation: true }],
    ["create", MANAGER, { resource: mine, schema: SCHEMA, authorise: [PEER], value: { name: "n" } }],
    ["create", MANAGER, { resource: mine, observer: PEER }], ["unsubscribe", MANAGER, { resource: mine, observer: PEER }],
    ["update", MANAGER, { resource: mine, attribute: "a.b", value: [1], attributeType: "array", operation: "add" }],
    ["update", MANAGER, { resource: mine, value: { a: 1 } }], ["delete", MANAGER, { resource: mine, attribute: "a" }],
    ["subscribe", MANAGER, { resource: OBJECT, p2p: true, resume: true, source: PEER }],
    ["unsubscribe", MANAGER, { resource: OBJECT }], ["read", OBJECT, { attribute: "n" }],
    ["subscribe", `${OBJECT}/subscription`, { source: harm.url, version: 1, renews: true }],
    ["unsubscribe", `${OBJECT}/subscription`, { source: honest.url }], ["forward", honest.url, { message: { from: PEER } }],
    ["create", `${mine}/children/resources`, { resource: `${harm.url}#1`, value: 1 }],
    ["read", `${RUNTIME}/registry`, { resource: RUNTIME }], ["create", honest.url, { value: 1 }],
    ["subscribe", `${RUNTIME}/registry`, { resources: [`${PEER}/registration`] }],
  ];
  for (const [type, to, body] of asked) for (const one of spoilt(body)) await harm.say(type, to, one);
  await node.clock.turn(100);
  const asking = honest.request(PEER, 1);
  await settle();
  assert.equal(await asking, "here");
  assert.deepEqual([object.value, object.version, object.observers], [{ n: 0 }, 1, []]);
  assert.deepEqual([ended, runtime.state, {}.polluted], [[], "live", undefined]);
});

test("of all records, it follows a share, in its own name, and none when it has ended", async (t) => {
  const { node, runtime, harm, honest } = await attacked(t);
  const registry = `${RUNTIME}/registry`;
  const path = (number) => `hyperty://a.ex/they-${number}/registration`;
  const followed = (type) => node.said({ type, to: `${NODE}/sm` }).flatMap(({ body }) => body.resources).filter((one) => one.endsWith("/registration"));
  const most = Math.floor(MAX_SUBSCRIPTIONS / 4 / 2);
  for (let number = 0; number < most; number += 1) {
    assert.equal(await harm.say("subscribe", registry, { resources: [path(number)] }), 200);
  }
  assert.equal(await harm.say("subscribe", registry, { resources: [path(most)] }), 413);
  // Again is not another one.
  assert.equal(await harm.say("subscribe", registry, { resources: [path(0)] }), 200);
  const following = honest.follow("hyperty://a.ex/other", () => {});
  await settle();
  await following;
  assert.equal(await harm.say("unsubscribe", registry, { resources: ["hyperty://a.ex/other/registration"] }), 200);
  assert.equal(await harm.say("unsubscribe", registry, { resources: [path(0)] }), 200);
  assert.equal(await harm.say("subscribe", registry, { resources: [path(most)] }), 200);
  for (const resources of [[path(0), path(1)], [`${NODE}/registration`], ["x/registration"], [7], []]) {
    assert.equal(await harm.say("subscribe", registry, { resources }), 400);
  }
  assert.equal(await harm.say("subscribe", registry, { resources: [path(9)] }, honest.url), 401);
  assert.equal(await harm.say("subscribe", registry, { resources: [path(9)] }, `${harm.url}/part`), 400);
  harm.port.postMessage({ do: "failed", why: "it is over" });
  await settle();
  assert.deepEqual(followed("unsubscribe").sort(), followed("subscribe").filter((one) => !one.includes("other")).sort());
  assert.equal(runtime.bus.isListenedTo("hyperty://a.ex/other/registration"), true);
});

test("one that takes no statuses is told the last of each record, when it does again", async (t) => {
  const { node, harm, ended } = await attacked(t);
  const path = `${PEER}/registration`;
  assert.equal(await harm.say("subscribe", `${RUNTIME}/registry`, { resources: [path] }), 200);
  const told = () => harm.heard.filter((one) => one.do === "status").map(({ status }) => status);
  for (const [id, value] of ["live", "disconnected", "live", "deleted"].entries()) {
    node.say({ id: id + 1, type: "update", from: REGISTRY, to: path, body: { attribute: "status", value } });
  }
  await settle();
  assert.deepEqual(told(), ["live"]);
  harm.port.postMessage({ do: "told" });
  await settle();
  assert.deepEqual([told(), ended], [["live", "deleted"], []]);
  harm.port.postMessage({ do: "told" });
  await settle();
  harm.port.postMessage({ do: "told" });
  await settle();
  assert.deepEqual(ended, ["it says what nobody has asked for"]);
});
