// Odd values, of which a page makes what a program makes of them: `vectors.json` says what.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openRuntime } from "../../web/src/index.js";
import { BadMessageError } from "../../web/src/json.js";
import { readLine } from "../../web/src/message.js";
import "../../web/src/more.js";
import { ObserverCore } from "../../web/src/sync/copy.js";
import { valueDigest } from "../../web/src/trace.js";
import { changeIn } from "../../web/src/value.js";
import { FakeNode, settle } from "./fake_node.js";

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

const times = (count, begin, act) => Array.from({ length: count }).reduce(act, begin);

/** The value that a vector describes, as `vectors.py` makes it. */
function made(value) {
  if (Array.isArray(value)) return value.map(made);
  if (typeof value !== "object" || value === null) return value;
  if ("$number" in value) return Number(value.$number);
  if ("$repeat" in value) return value.$repeat[0].repeat(value.$repeat[1]);
  if ("$list" in value) return Array(value.$list[1]).fill(made(value.$list[0]));
  if ("$join" in value) return Array(value.$join[1]).fill(value.$join[0]).join(".");
  if ("$nested" in value) return times(value.$nested, 1, (inner) => [inner]);
  if ("$nestedKeys" in value) return times(value.$nestedKeys, 1, (inner) => ({ k: inner }));
  if ("$keys" in value) return Object.fromEntries(Array.from({ length: value.$keys }, (_, key) => [key, 1]));
  if ("$named" in value) return { [made(value.$named[0])]: made(value.$named[1]) };
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, made(part)]));
}

async function opened(name = "ra", domain = "a.ex") {
  const node = new FakeNode(domain, name);
  const comms = Array.from({ length: 300 }, (_, at) => `comm://a.ex/${at}`);
  node.answers = ({ to, type }) =>
    type === "create" && to.endsWith("/address-allocation") && node.messages.length > 3
      ? { code: 200, value: { allocated: [comms.shift()] } }
      : undefined;
  const opening = openRuntime({ domain, name, node: "wss://node.a.ex/link", key: null, connect: node.connect, clock: node.clock });
  await settle();
  const runtime = await opening;
  const deploying = runtime.deploy("echo", { request: ({ body }) => valueDigest(body) });
  await settle();
  return { runtime, hyperty: await deploying };
}

/** What comes of it: refused, or a value. */
async function outcome(act) {
  try {
    return await act();
  } catch (error) {
    if (error.name === "Refusal") {
      assert.ok([400, 413].includes(error.code), String(error));
      return "refused";
    }
    throw error;
  }
}

/** Compare all, and show all that differ. */
function compare(all, results) {
  const differing = all.filter(({ makes }, at) => {
    try {
      assert.deepEqual(results[at], makes);
      return false;
    } catch {
      return true;
    }
  });
  const shown = differing.map((one) => `${JSON.stringify(one).slice(0, 300)}: ${JSON.stringify(results[all.indexOf(one)])}`);
  assert.equal(differing.length, 0, shown.join("\n"));
}

test(`${vectors.writes.length} writes to data objects`, async () => {
  const { hyperty } = await opened();
  const thing = await hyperty.report("comm", vectors.start);
  const become = async (value) => {
    for (const key of Object.keys({ ...thing.value, ...value })) {
      if (!Object.hasOwn(value, key)) await thing.remove(key);
      else if (!Object.hasOwn(thing.value, key) || valueDigest(thing.value[key]) !== valueDigest(value[key])) await thing.set(key, value[key]);
    }
  };
  const written = async ({ call, ...vector }) => {
    const [value, path] = [made(vector.value), made(vector.path)];
    if (call === "report" || call === "named") {
      const other = await hyperty.report("comm", value, { name: made(vector.name) });
      void other.close();
      return valueDigest(other.value);
    }
    if (call === "child") return valueDigest((await thing.children.create(value)).value);
    await become(made(vector.start ?? vectors.start));
    await thing[call](path, ...(call === "remove" ? [] : call === "set" ? [value] : value));
    return valueDigest(thing.value);
  };
  const results = [];
  for (const one of vectors.writes) results.push(await outcome(() => written(one)));
  compare(vectors.writes, results);
});

test(`${vectors.requests.length} bodies of requests`, async () => {
  const { hyperty } = await opened();
  const results = [];
  for (const { body } of vectors.requests) {
    results.push(await outcome(async () => {
      const answer = await hyperty.ask("create", hyperty.url, made(body));
      return answer.body.code === 200 ? answer.body.value : "refused";
    }));
  }
  compare(vectors.requests, results);
});

test(`${vectors.changes.length} changes that a reporter publishes`, () => {
  compare(vectors.changes, vectors.changes.map(({ body }) => {
    let shown = 0;
    const port = { step() {}, read() {}, end() {}, show: (version) => (shown = version) };
    const copy = new ObserverCore("comm://a.ex/1", "hyperty://a.ex/o", port);
    copy.begin(0);
    copy.become({ version: 2, data: made(vectors.before) }, 0);
    shown = 0;
    try {
      const change = changeIn(JSON.parse(JSON.stringify(made(body))));
      copy.change(change, 0);
      if (copy.state === "stale") return "read";
      if (shown) return valueDigest(copy.data);
    } catch (error) {
      if (error instanceof BadMessageError) return "refused";
      throw error;
    }
    return copy.state === "live" ? "ignored" : copy.state;
  }));
});

test(`${vectors.names.length} names of runtimes and domains`, async () => {
  const results = [];
  for (const { domain, name } of vectors.names) {
    try {
      const node = new FakeNode();
      const opening = openRuntime({ domain: made(domain), name: made(name), node: "wss://node.a.ex/link", key: null, connect: node.connect, clock: node.clock });
      opening.catch(() => {});
      await settle();
      const { url } = await opening;
      results.push(url.slice("hyperty-runtime://".length));
    } catch {
      results.push("refused");
    }
  }
  compare(vectors.names, results);
});

test(`${vectors.lines.length} lines, the most of which are no JSON`, () => {
  compare(vectors.lines, vectors.lines.map(({ text }) => {
    const read = readLine(text);
    if (!("error" in read)) return "a message";
    const answer = read.answer ?? read.replacement;
    return { code: read.error.code, answer: answer && [answer.id, answer.from, answer.to, answer.body.code] };
  }));
});
