// A hyperty in a Worker, which is a thread of Node.js here, and a node that is played.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Worker as Thread } from "node:worker_threads";

import { CLOCK } from "../../web/src/clock.js";
import { MAILBOX } from "../../web/src/constants.js";
import { openRuntime } from "../../web/src/index.js";
import { FakeNode, PEER, RUNTIME } from "./fake_node.js";

const OBJECT = "comm://a.ex/mine";
const THEIRS = "comm://a.ex/theirs";
const PEERS = "hyperty-runtime://a.ex/rb/sm";

/** What a thread of Node.js lacks of a Worker: its globals, and modules in Blobs. */
const BOOT = `
  import { parentPort } from "node:worker_threads";
  Object.assign(globalThis, {
    WorkerGlobalScope: true,
    name: NAME,
    addEventListener: (_, listener) => parentPort.once("message", (data) => listener({ data })),
    Blob: class { constructor(parts) { this.text = parts.join(""); } },
  });
  URL.createObjectURL = ({ text }) => "data:text/javascript," + encodeURIComponent(text);
  URL.revokeObjectURL = () => {};
  await import(MODULE);
`;

globalThis.Worker = class {
  #thread;

  constructor(url, { name }) {
    const text = BOOT.replace("NAME", JSON.stringify(name)).replace("MODULE", JSON.stringify(String(url)));
    this.#thread = new Thread(new URL(`data:text/javascript,${encodeURIComponent(text)}`));
    this.#thread.on("error", (error) => this.onerror?.({ message: String(error) }));
  }

  postMessage(message, ports) {
    this.#thread.postMessage(message, ports);
  }

  terminate() {
    void this.#thread.terminate();
  }
};
const fetched = [];
globalThis.fetch = async (url) => {
  fetched.push(url.slice(url.lastIndexOf("/") + 1));
  return new Response(readFileSync(new URL(url)));
};

const CODE = `export default class {
  constructor(hyperty) { this.hyperty = hyperty; }
  subscribe() {}
  request({ body: { value: [act, ...rest] } }) { return this[act](...rest); }
  async report(value) {
    this.one = await this.hyperty.report("comm", value);
    return this.one.url;
  }
  async observe(url) {
    this.one = await this.hyperty.observe(url);
    return this.one.value;
  }
  set(path, value) { return this.one.set(path, value); }
  has(n) { return this.one.waitFor((value) => value.n === n); }
  async children(count) {
    while (this.one.children.size < count) {
      await new Promise((next) => { const end = this.one.children.on("change", () => next(end())); });
    }
    return count;
  }
  statuses = [];
  async follow(url) { this.end = await this.hyperty.follow(url, (status) => this.statuses.push(status)); }
  leave() { return this.end(); }
  async told(count) {
    while (this.statuses.length < count) await new Promise((next) => setTimeout(next, 1));
    return this.statuses;
  }
  async forge(from, type, to, body) {
    const { url } = this.hyperty;
    this.hyperty.url = from;
    const answer = await this.hyperty.ask(type, to, body);
    this.hyperty.url = url;
    return answer.body.code;
  }
}`;

/** What runtimes of observers and reporters answer. */
const others = ({ type, to }) => {
  if (type === "delete" && to === `${OBJECT}/changes`) return { code: 200, source: PEERS.slice(0, -3) };
  if (to !== `${THEIRS}/subscription`) return undefined;
  return { code: 200, value: { version: 1, reporter: PEER, url: THEIRS, data: { n: 0 } } };
};

/** Time that keeps no process. */
const clock = {
  now: CLOCK.now,
  at(moment, act) {
    if (moment === Infinity) return () => {};
    const timer = setTimeout(act, (moment - CLOCK.now()) * 1000).unref();
    return () => clearTimeout(timer);
  },
};

async function opened(t) {
  const node = Object.assign(new FakeNode(), { answers: others });
  const worker = new URL("../../web/protofly.js", import.meta.url);
  const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, worker, clock };
  const runtime = await openRuntime({ ...options, connect: node.connect });
  t.after(() => runtime.close());
  const apart = await runtime.deploy("apart", new Blob([CODE]));
  const here = await runtime.deploy("here", {});
  /** Have the code in the Worker do something. */
  const ask = (...asked) => here.request(apart.url, asked);
  return { node, runtime, apart, here, ask };
}

/** Wait for a message of the runtime. */
async function sent(node, about) {
  for (;;) {
    const [found] = node.said(about);
    if (found) return found;
    await new Promise((next) => setTimeout(next, 1));
  }
}

async function reporting(t) {
  const all = await opened(t);
  all.node.addresses.push(OBJECT);
  assert.equal(await all.ask("report", { n: 0 }), OBJECT);
  const asked = { id: 1, type: "subscribe", from: PEERS, to: `${OBJECT}/subscription`, body: { source: PEER } };
  all.node.say(asked);
  const { body } = await sent(all.node, { type: "response", to: PEERS, id: 1 });
  return { ...all, granted: body };
}

test("code in a Worker reports an object, and decides about its observers", async (t) => {
  fetched.length = 0;
  const { node, apart, ask, granted } = await reporting(t);
  assert.deepEqual([granted.code, granted.value.reporter, granted.value.data], [200, apart.url, { n: 0 }]);
  assert.equal(await ask("set", "n", 1), 2);
  const { from, body } = await sent(node, { to: `${OBJECT}/changes` });
  assert.deepEqual([from, body.version, body.attribute, body.value], [OBJECT, 2, "n", 1]);
  await apart.close();
  assert.equal(node.said({ type: "delete", to: `${OBJECT}/changes` }).length, 1);
  assert.deepEqual(fetched, ["protofly-objects.js"]);
});

test("code in a Worker observes an object of others", async (t) => {
  const { node, ask } = await opened(t);
  assert.deepEqual(await ask("observe", THEIRS), { n: 0 });
  const body = { version: 2, attribute: "n", value: 7 };
  node.say({ id: 5, type: "update", from: THEIRS, to: `${THEIRS}/changes`, body });
  assert.deepEqual(await ask("has", 7), { n: 7 });
});

test("children that observers write take no room of the requests to a Worker", async (t) => {
  const { node, runtime, ask } = await reporting(t);
  const to = `${OBJECT}/children/resources`;
  const say = (type, id, name) =>
    node.say({ id, type, from: PEER, to, body: { resource: `${PEER}#${name}`, value: id } });
  // More than a Worker may have open.
  for (let name = 1; name < 2 * MAILBOX; name += 2) {
    say("create", name, name);
    say("delete", name + 1, name);
    if (name % 100 === 1) await ask("children", 0);
  }
  const last = 2 * MAILBOX + 1;
  say("create", last, last);
  assert.equal(await ask("children", 1), 1);
  assert.equal(runtime.counters.drops.size, 0);
});

test("a Worker reports nothing in the name of another, and has no object of others", async (t) => {
  const { node, runtime, here, ask } = await opened(t);
  const manager = `${RUNTIME}/sm`;
  node.addresses.push(OBJECT);
  const object = await here.report("comm", { n: 0 });
  const created = { value: { data: {}, reporter: here.url }, schema: "x/Communication" };
  assert.equal(await ask("forge", here.url, "create", manager, created), 401);
  assert.equal(await ask("forge", OBJECT, "delete", `${OBJECT}/changes`, {}), 401);
  assert.deepEqual(Object.fromEntries(runtime.counters.drops), { "unknown-source": 2 });
  await assert.rejects(ask("observe", OBJECT), { code: 403 });
  assert.deepEqual([object.value, object.observers], [{ n: 0 }, []]);
});

test("the page and the Worker ask in the name of a hyperty, and no two requests share an id", async (t) => {
  const { node, apart, ask } = await opened(t);
  const asked = node.answers;
  node.answers = (message) => (message.to === PEER ? { code: 200 } : asked(message));
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal((await apart.ask("read", PEER, {})).body.code, 200);
    assert.equal(await ask("forge", apart.url, "read", PEER, {}), 200);
    assert.equal(await ask("forge", apart.url, "read", PEER, {}), 200);
  }
  const ids = node.said({ from: apart.url, to: PEER }).map(({ id }) => id);
  assert.equal(new Set(ids).size, 9);
});

test("code in a Worker follows a record until it leaves, and hears what the node has forgotten", async (t) => {
  const { node, runtime, apart, ask } = await opened(t);
  const path = `${THEIRS}/registration`;
  const said = (type) => node.said({ type, to: "domain://msg-node.a.ex/sm" }).filter(({ body }) => body.resources[0] === path);
  let status = "live";
  node.answers = ({ type, body }) => (type === "read" && body.resource === THEIRS ? { code: 200, value: { url: THEIRS, status } } : undefined);
  await ask("follow", THEIRS);
  assert.deepEqual(await ask("told", 1), ["live"]);
  node.say({ id: 1, type: "update", from: "domain://registry.a.ex", to: path, body: { attribute: "status", value: "disconnected" } });
  assert.deepEqual(await ask("told", 2), ["live", "disconnected"]);
  node.control = ({ body: { method } }) =>
    method === "re-open" ? { code: 410 } : { code: 200, value: { sessionToken: "other" } };
  node.cut();
  assert.deepEqual(await ask("told", 3), ["live", "disconnected", "live"]);
  assert.deepEqual([said("subscribe").length, said("unsubscribe").length], [2, 0]);
  await ask("leave");
  await sent(node, { type: "unsubscribe", to: "domain://msg-node.a.ex/sm" });
  await ask("follow", THEIRS);
  await apart.close();
  assert.equal(said("unsubscribe").length, 2);
  assert.equal(runtime.bus.isListenedTo(path), false);
});

test("code in a Worker hears that it may not follow a record", async (t) => {
  const { node, apart, ask } = await opened(t);
  node.answers = ({ body: { resources } }) => (resources ? { code: 403, description: "no" } : undefined);
  await assert.rejects(ask("follow", PEER), { code: 403, reason: /no$/ });
  await assert.rejects(apart.follow(PEER, () => {}), TypeError);
});

test("code in the page follows records by the same call, and each follower hears each status", async (t) => {
  const { node, runtime, here } = await opened(t);
  node.answers = ({ type, body }) => (type === "read" && body.resource === PEER ? { code: 200, value: { url: PEER, status: "live" } } : undefined);
  const heard = [[], []];
  const ends = [];
  // An address is written in any way.
  for (const one of heard) ends.push(await here.follow(PEER.toUpperCase().replace("PEER", "peer"), (status) => one.push(status)));
  await Promise.resolve();
  assert.deepEqual(heard, [["live"], ["live"]]);
  const paths = () => node.said({ to: "domain://msg-node.a.ex/sm" }).map(({ type }) => type);
  await ends[0]();
  assert.deepEqual(paths(), ["subscribe"]);
  await ends[1]();
  assert.deepEqual(paths(), ["subscribe", "unsubscribe"]);
  assert.equal(runtime.bus.isListenedTo(`${PEER}/registration`), false);
});
