// A new child while the node is away: one child, whatever the answers to its attempts are.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openRuntime } from "../../web/src/index.js";
import "../../web/src/more.js";
import { FakeNode, settle } from "./fake_node.js";

const AWAY = 120;

async function settled(node, promise) {
  let value;
  promise.then((one) => { value = { one }; }, (error) => { value = { error }; });
  while (!value) await node.clock.turn(0.5);
  if (value.error) throw value.error;
  return value.one;
}

async function deployed(node, name) {
  const opening = openRuntime({ domain: "a.ex", name, node: "wss://node.a.ex/link", key: null,
    connect: node.connect, clock: node.clock });
  const runtime = await settled(node, opening);
  return settled(node, runtime.deploy("todo", {}));
}

test("the reporter's own child is created once, and at once, while the node is away", async () => {
  const node = new FakeNode("a.ex", "ra");
  const hyperty = await deployed(node, "ra");
  node.addresses = ["comm://a.ex/o"];
  const thing = await settled(node, hyperty.report("comm", { n: 0 }));
  node.accepts = false;
  node.cut();
  await node.clock.turn(AWAY);
  const began = node.clock.now();
  await settled(node, thing.children.create("hello"));
  assert.ok(node.clock.now() - began < 1);
  assert.deepEqual([...thing.children].map((one) => one.value), ["hello"]);
});

test("each attempt of an observer names the same child", async () => {
  const node = new FakeNode("a.ex", "ra");
  const url = "comm://a.ex/o";
  const value = { url, reporter: "hyperty://a.ex/peer", data: {}, version: 1 };
  const asked = [];
  node.answers = ({ to, type, body }) => {
    if (to === `${url}/subscription` && type === "subscribe") return { code: 200, version: 1, value };
    if (to !== `${url}/children/resources`) return undefined;
    asked.push(body.resource);
    return { code: asked.length < 3 ? 503 : 200, source: "hyperty://a.ex/peer" };
  };
  const hyperty = await deployed(node, "ra");
  const copy = await settled(node, hyperty.observe(url));
  await settled(node, copy.children.create("hello"));
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked).size, 1);
  assert.deepEqual([...copy.children].map((one) => one.id), [asked[0]]);
});
