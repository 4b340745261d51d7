// A node that sends messages that are nearly valid: GOLDEN names a file with such lines.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openRuntime } from "../../web/src/index.js";
import { FakeNode, PEER, request, RUNTIME, settle } from "./fake_node.js";

const { lines } = JSON.parse(readFileSync(process.env.GOLDEN, "utf8"));

test(`${lines.length} lines leave a runtime that works`, async () => {
  const node = new FakeNode();
  const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, trace: { limit: 1e6 } };
  const opening = openRuntime({ ...options, connect: node.connect, clock: node.clock });
  await settle();
  const runtime = await opening;
  const heard = [];
  const code = { request: (message) => (heard.push(message), message.body.value ?? null), event: (message) => heard.push(message) };
  const deploying = runtime.deploy("echo", code);
  await settle();
  const { url } = await deploying;
  for (const [at, { text }] of lines.entries()) {
    // Some are for the hyperty, whatever else is wrong with them.
    const aimed = text.replace(/"to": ?"[^"]*"/, at % 2 ? `"to":"${url}"` : "$&");
    node.say(aimed.length < 200_000 ? aimed : "{");
    if (at % 8 === 0) await node.clock.turn(1);
  }
  await node.clock.turn(60);
  assert.equal(runtime.state, "live");
  for (const { from, to } of heard) {
    assert.ok([url, `${url}/events`].includes(to), to);
    assert.ok(from !== url && !from.startsWith(RUNTIME), from);
  }
  const before = heard.length;
  assert.ok(before > 100, String(before));
  node.say(request(url, "still here", { id: 2 ** 40 }));
  await settle();
  assert.equal(heard.at(-1).body.value, "still here");
  assert.ok(node.said({ type: "response", to: PEER }).some(({ body }) => body.value === "still here"));
  // What was dropped or refused is counted, with no more than the reasons there are.
  assert.ok(runtime.counters.drops.get("malformed") > 100);
  assert.ok(runtime.counters.last.length <= 256);
});
