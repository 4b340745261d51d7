// The stubs of direct links of two pages: set-ups that somebody disturbs, links that lose what they
// carry, and what is left when a link has ended.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HANDLED_LINKS, HANDSHAKE_TIMEOUT, INVITATION_BURST, LINK_WINDOW, ORDER_HELD, STUB_QUEUE } from "../../web/src/constants.js";
import { settle, World } from "./world.js";

const [RA, RB, RC] = ["ra", "rb", "rc"].map((name) => `hyperty-runtime://a.ex/${name}`);
const HANDLER = `${RB}/p2phandler/1`;
const EVIL = "hyperty://a.ex/evil";

/** Two pages: the first one requests the link. */
async function pair() {
  const world = new World();
  const heard = [];
  const request = ({ body }) => (heard.push(body.value), body.value);
  const [one, other] = [await world.open(RA, { p2p: true }), await world.open(RB, { p2p: true })];
  const [near, far] = [await world.until(one.deploy("near", { request })), await world.until(other.deploy("far", { request }))];
  const statusOf = (runtime) => runtime.registry.links.entries.map(({ status }) => status).join();
  const isLive = () => [one, other].every((runtime) => statusOf(runtime) === "live");
  /** Ask over what way there is; the link comes about meanwhile. */
  const ask = (value) => near.ask("create", far.url, { value });
  const goLive = async () => {
    assert.equal((await world.until(ask("first"))).body.code, 200);
    assert.ok(await world.waitFor(isLive), "no link");
  };
  let id = 0;
  /** Have the node bring a message; return its answer. */
  const bring = async (runtime, message) => {
    id += 1;
    world.seats.get(runtime).bring({ id, body: {}, ...message });
    await settle();
  };
  /** What somebody outside is answered; `services` of the world hears it. */
  const answers = [];
  const left = [];
  const outside = (url) => world.services.set(url, (message) => {
    if (message.type === "response") answers.push(message);
    else if (message.type === "unsubscribe") left.push(message.to);
    return null;
  });
  /** Invite the second page in the name of a runtime outside. */
  const invite = (nth, runtime = RC, source = `${runtime}/p2prequester/1`) => {
    const url = `connection://a.ex/of-${nth}`;
    outside(`${url}/subscription`);
    return bring(RB, { type: "create", from: `${url}/subscription`, to: HANDLER, body: { source, value: { runtime } } });
  };
  const close = () => world.close();
  return { world, one, other, near, far, heard, statusOf, isLive, ask, goLive, bring, invite, answers, left, close };
}

/** Have the node lose, or answer itself, what `decide` says; undefined: it is carried. */
function disturb(world, decide) {
  const route = world.route.bind(world);
  world.route = (message, seat) => {
    const code = decide(message);
    if (code === undefined) return route(message, seat);
    if (code) seat.bring({ id: message.id, type: "response", from: message.to, to: message.from, body: { code } });
    return undefined;
  };
}

const isOfLink = ({ to, type }) => type === "update" && /^connection:.*\/changes$/.test(to);

test("a link comes about although changes of an offer or answer are lost, and a read is refused", async () => {
  const { world, goLive, close } = await pair();
  let [lost, refused] = [0, 0];
  disturb(world, (message) => {
    if (isOfLink(message) && lost < 2) return (lost += 1), null;
    if (message.type === "read" && /^connection:/.test(message.to) && refused < 2) return (refused += 1), 503;
    return undefined;
  });
  await goLive();
  assert.equal(lost, 2);
  assert.ok(refused >= 1);
  await close();
});

test("each end tries the candidates of the other, also those that come before its connection is there", async () => {
  const { world, goLive, close } = await pair();
  await goLive();
  const ends = world.connections.map(({ owner, tried }) => [owner, tried.length > 0]);
  assert.deepEqual(Object.fromEntries(ends), { [RA]: true, [RB]: true });
  await close();
});

test("candidates of a peer that come while an end still asks for its servers are tried", async () => {
  const { world, one, ask, statusOf, close } = await pair();
  world.services.set("domain://qos.a.ex", (_, { url }) => (url === RB ? null : { code: 200, value: { servers: [] } }));
  void ask("first");
  assert.ok(await world.waitFor(() => statusOf(one) === "live"), "no link");
  const tried = world.connections.filter(({ owner }) => owner === RB).map(({ tried }) => tried.map(({ candidate }) => candidate));
  assert.equal(tried.length, 1);
  assert.equal(tried[0].filter(Boolean).length, 1);
  await close();
});

test("nobody but the object of a link ends or changes it", async () => {
  const { world, goLive, bring, isLive, ask, statusOf, one, close } = await pair();
  await goLive();
  const objects = [...world.subscribed.keys()].filter((url) => /^connection:.*\/changes$/.test(url));
  assert.equal(objects.length, 2);
  for (const to of objects) {
    for (const runtime of [RA, RB]) for (const type of ["delete", "update"]) await bring(runtime, { type, from: EVIL, to, body: { version: 9 } });
  }
  await world.turn(5);
  assert.ok(isLive(), statusOf(one));
  assert.equal((await world.until(ask("by the link"))).body.code, 200);
  await close();
});

test("nobody invites by a link, and nobody in the name of another runtime", async () => {
  const { world, near, other, goLive, invite, answers, isLive, close } = await pair();
  await goLive();
  const back = [];
  world.carried = (data, owner) => (owner === RB ? typeof data === "string" && back.push(...data.split("\n")) && null : data);
  for (const [nth, runtime] of [RA, RC].entries()) {
    const body = { source: `${runtime}/p2prequester/9`, value: { runtime }, via: [] };
    world.channels[0].channel.send(JSON.stringify({ id: 900 + nth, type: "create", from: near.url, to: HANDLER, body }));
  }
  await settle();
  const codes = back.map((line) => JSON.parse(line)).filter(({ type }) => type === "response").map(({ id, body }) => [id, body.code]);
  assert.deepEqual(codes, [[900, 403], [901, 403]]);
  await invite(1, RC, `${RA}/p2prequester/1`);
  await invite(2, RC, "");
  await invite(3, RB, `${RB}/p2prequester/1`);
  assert.deepEqual(answers.map(({ body }) => body.code), [400, 400, 400]);
  assert.deepEqual([isLive(), other.registry.links.entries.length], [true, 1]);
  await close();
});

test("who invites again has one link, and who does so too often is refused for a while", async () => {
  const { world, other, invite, answers, left, close } = await pair();
  for (let nth = 1; nth <= INVITATION_BURST + 2; nth += 1) await invite(nth);
  await world.turn(1);
  const refused = answers.filter(({ body }) => body.code === 503);
  assert.equal(refused.length, 2);
  assert.ok(refused.every(({ body }) => body.retryAfter > 0));
  assert.deepEqual(other.registry.links.entries.map(({ remote }) => remote), [RC]);
  assert.deepEqual(left, Array.from({ length: INVITATION_BURST - 1 }, (_, at) => `connection://a.ex/of-${at + 1}/subscription`));
  // Another one is not kept from it.
  await invite(100, `${RC}c`);
  await world.turn(10);
  await invite(101);
  await settle();
  assert.equal(answers.filter(({ body }) => body.code === 503).length, 2);
  await close();
});

test("a page has links to so many runtimes, and to no more", async () => {
  const { world, other, invite, answers, close } = await pair();
  for (let nth = 1; nth <= HANDLED_LINKS + 3; nth += 1) await invite(nth, `${RC}-${nth}`);
  assert.equal(answers.filter(({ body }) => body.code === 503).length, 3);
  assert.ok(other.registry.links.entries.length <= HANDLED_LINKS);
  // One of them may ask anew.
  await invite(1000, `${RC}-1`);
  assert.equal(answers.filter(({ body }) => body.code === 503).length, 3);
  await world.turn(60);
  await invite(2000, `${RC}-new`);
  assert.equal(answers.filter(({ body }) => body.code === 503).length, 3);
  await close();
});

test("a peer that does not greet, or not as it should, gets no link", async () => {
  for (const [how, seconds] of [[() => null, HANDSHAKE_TIMEOUT + 1], [(text) => text.replace(/("nonce":")../, "$1|x"), 1]]) {
    const { world, ask, statusOf, one, close } = await pair();
    world.carried = (data, owner) => (owner === RB && typeof data === "string" && data.includes('"opened"') ? how(data) : data);
    assert.equal((await world.until(ask("first"))).body.code, 200);
    assert.ok(await world.waitFor(() => world.channels.length === 1));
    await world.turn(seconds);
    assert.equal(world.channels[0].channel.readyState, "closed");
    assert.notEqual(statusOf(one), "live");
    assert.equal((await world.until(ask("by the node"))).body.code, 200);
    await close();
  }
});

test("an end that hears no greeting in time closes its channel, and not before", async () => {
  const { world, ask, close } = await pair();
  // The hello is lost.
  world.carried = (data, owner) => (owner === RA && String(data).includes('"hello"') ? null : data);
  void ask("first");
  assert.ok(await world.waitFor(() => world.channels.length === 1));
  const [{ channel }] = world.channels;
  await world.turn(HANDSHAKE_TIMEOUT - 1);
  assert.equal(channel.readyState, "open");
  await world.turn(1.5);
  assert.equal(channel.readyState, "closed");
  await close();
});

test("what a link had not delivered when it broke goes by the node, once and in order", async () => {
  const { world, goLive, ask, heard, isLive, close } = await pair();
  await goLive();
  let isLosing = true;
  world.carried = (data) => (isLosing ? null : data);
  const asking = [1, 2, 3].map(ask);
  await world.turn(1);
  isLosing = false;
  world.cutChannels(RA, RB);
  const answered = await world.until(Promise.all(asking));
  assert.deepEqual(answered.map(({ body }) => [body.code, body.value]), [[200, 1], [200, 2], [200, 3]]);
  assert.deepEqual(heard, ["first", 1, 2, 3]);
  assert.ok(await world.waitFor(isLive), "the link comes back");
  await close();
});

test("a request that was answered before its link broke does not go by the node, too", async () => {
  const { world, near, far, goLive, ask, isLive, close } = await pair();
  await goLive();
  const unacknowledged = (data) => String(data).split("\n").filter((line) => !line.startsWith('{"p2p":"ack"')).join("\n") || null;
  world.carried = (data, owner) => (owner === RB ? unacknowledged(data) : data);
  const byNode = [];
  disturb(world, ({ from, to, type }) => void (from === near.url && to === far.url && byNode.push(type)));
  assert.equal((await world.until(ask("by the link"))).body.value, "by the link");
  world.cutChannels(RA, RB);
  await world.turn(1);
  assert.deepEqual(byNode, []);
  world.carried = (data) => data;
  assert.ok(await world.waitFor(isLive), "the link comes back");
  await close();
});

test("a change that a link had not delivered when it broke is lost, and its observer reads it", async () => {
  const { world, near, far, goLive, close } = await pair();
  await goLive();
  const mine = await world.until(near.report("comm", { n: 1 }, { allow: [far.url] }));
  const theirs = await world.until(far.observe(mine.url, { p2p: true }));
  await world.turn(5);
  const lost = [];
  const byNode = [];
  const isChange = ({ to, type }) => type === "update" && to === `${mine.url}/changes`;
  world.carried = (data) => (lost.push(...String(data).split("\n").map((line) => JSON.parse(line))), null);
  disturb(world, (message) => void (isChange(message) && byNode.push(message.id)));
  await world.until(mine.set("n", 2));
  world.cutChannels(RA, RB);
  await world.turn(0.5);
  world.carried = (data) => data;
  const [{ id }] = lost.filter((one) => one.type && isChange(one));
  assert.ok(await world.waitFor(() => theirs.value.n === 2), "the change is lost for good");
  assert.ok(!byNode.includes(id));
  await close();
});

test("what has gone by a link before does not go by it again", async () => {
  const { world, one, other, near, far, heard, goLive, close } = await pair();
  await goLive();
  const [{ url }] = one.registry.links.entries;
  void near.ask("create", far.url, { value: "round", via: [url] });
  await world.turn(1);
  assert.deepEqual([heard, one.counters.drops.get("loop"), other.counters.drops.get("loop")], [["first"], 1, undefined]);
  await close();
});

test("an answer that a link had not delivered when it broke goes by the node", async () => {
  const { world, goLive, ask, heard, close } = await pair();
  await goLive();
  // What acknowledges the request comes through.
  const controls = (data) => String(data).split("\n").filter((line) => line.startsWith('{"p2p":')).join("\n") || null;
  world.carried = (data, owner) => (owner === RB ? controls(data) : data);
  const asking = ask("asked by the link");
  await world.turn(1);
  assert.deepEqual(heard, ["first", "asked by the link"]);
  world.cutChannels(RA, RB);
  world.carried = (data) => data;
  assert.equal((await world.until(asking)).body.value, "asked by the link");
  assert.equal(heard.length, 2);
  await close();
});

test("children go by the links of an object's observers once, as its reporter has numbered them", async () => {
  const { world, near, far, goLive, close } = await pair();
  await goLive();
  const mine = await world.until(near.report("comm", { n: 1 }, { allow: [far.url] }));
  const theirs = await world.until(far.observe(mine.url, { p2p: true }));
  await world.turn(5);
  const lines = [];
  world.carried = (data, owner) => {
    if (owner === RA) lines.push(...String(data).split("\n").map((line) => JSON.parse(line)));
    return data;
  };
  const byLink = () => lines.filter(({ to, type }) => type && to.endsWith("/children/resources")).map(({ from, body }) => [from, body.value]);
  const child = await world.until(mine.children.create("of the reporter"));
  await world.until(theirs.children.create("of the observer"));
  await world.turn(0.5);
  assert.deepEqual([...theirs.children].map(({ value }) => value).sort(), ["of the observer", "of the reporter"]);
  assert.deepEqual(byLink().filter(([, value]) => value), [[mine.url, "of the reporter"], [mine.url, "of the observer"]]);
  assert.equal(child.value, "of the reporter");
  await close();
});

test("a link that does not drain refuses what there is no room for, and counts it", async () => {
  const { world, one, goLive, ask, close } = await pair();
  await goLive();
  world.carried = () => null;
  const most = LINK_WINDOW + STUB_QUEUE;
  const codes = [];
  for (let nth = 0; nth < most + 5; nth += 1) void ask(nth).then(({ body }) => codes.push([body.code, body.retryAfter > 0]));
  await settle();
  assert.ok(codes.length >= 4 && codes.length <= 6, String(codes.length));
  assert.deepEqual(new Set(codes.map(String)), new Set(["503,true"]));
  assert.equal(one.counters.drops.get("overflow"), codes.length);
  world.carried = (data) => data;
  await close();
});

test("of a link so many messages wait for earlier ones, and the next is refused and counted", async () => {
  const { world, near, far, other, goLive, close } = await pair();
  await goLive();
  const { channel } = world.channels[0];
  const behind = { p2p: "behind", from: near.url, to: far.url, last: 2 ** 52, top: 2 ** 52, age: 0, answers: [] };
  channel.send(JSON.stringify(behind));
  const back = [];
  world.carried = (data, owner) => (owner === RB ? typeof data === "string" && back.push(...data.split("\n")) && null : data);
  for (let nth = 0; nth < ORDER_HELD + 3; nth += 1) {
    channel.send(JSON.stringify({ id: 10 ** 7 + nth, type: "create", from: near.url, to: far.url, body: {} }));
  }
  await settle();
  assert.equal(other.counters.drops.get("overflow"), 3);
  const refused = back.map((line) => JSON.parse(line)).filter(({ type }) => type === "response").map(({ id, body }) => [id, body.code]);
  assert.deepEqual(refused, [0, 1, 2].map((nth) => [10 ** 7 + ORDER_HELD + nth, 503]));
  await close();
});

test("what waits for a message that the node has lost goes before a younger one that the node brings", async () => {
  const { world, near, far, heard, bring, goLive, close } = await pair();
  await goLive();
  const { channel } = world.channels[0];
  const created = { type: "create", from: near.url, to: far.url };
  const back = [];
  world.carried = (data, owner) => (owner === RB ? back.push(...String(data).split("\n")) && null : data);
  channel.send(JSON.stringify({ p2p: "behind", from: near.url, to: far.url, last: 2 ** 52, top: 2 ** 52, age: 0, answers: [] }));
  channel.send(JSON.stringify({ ...created, id: 2 ** 52 + 1, body: { value: "by the link" } }));
  await settle();
  assert.deepEqual(heard, ["first"]);
  await bring(RB, { ...created, id: 2 ** 52 + 2, body: { value: "by the node" } });
  assert.deepEqual(heard, ["first", "by the link", "by the node"]);
  // What comes by the link after a younger one is refused.
  channel.send(JSON.stringify({ ...created, id: 2 ** 52, body: { value: "too late" } }));
  await settle();
  const refused = back.map((line) => JSON.parse(line)).filter(({ id }) => id === 2 ** 52).map(({ id, body }) => [id, body.code, body.description]);
  assert.deepEqual([heard.length, refused], [3, [[2 ** 52, 503, "a later message of its sender came first, by another path"]]]);
  await close();
});

test("what a link brings waits no longer for a request that the node has refused", async () => {
  const { world, near, far, heard, ask, bring, goLive, close } = await pair();
  await goLive();
  let lost = null;
  disturb(world, (message) => (message.body.p2p === false && message.type === "create" ? ((lost = message), null) : undefined));
  void near.ask("create", far.url, { value: "lost", p2p: false });
  const asking = ask("by the link");
  await world.turn(1);
  assert.deepEqual([typeof lost?.id, heard], ["number", ["first"]]);
  await bring(RA, { id: lost.id, type: "response", from: far.url, to: near.url, body: { code: 503 } });
  await world.turn(1);
  assert.deepEqual(heard, ["first", "by the link"]);
  assert.equal((await world.until(asking)).body.code, 200);
  await close();
});

test("a link can be ended by the name of its runtime, and nothing is left of it", async () => {
  const { world, one, other, goLive, statusOf, close } = await pair();
  const before = new Set(world.owners.keys());
  await goLive();
  const ending = other.ask("execute", HANDLER, { method: "disconnect", params: [RC] });
  assert.equal((await world.until(ending)).body.code, 200);
  assert.equal(statusOf(other), "live");
  const answer = await world.until(other.ask("execute", HANDLER, { method: "disconnect", params: [RA] }));
  assert.equal(answer.body.code, 200);
  assert.ok(await world.waitFor(() => !statusOf(one) && !statusOf(other)), "the link has not ended");
  await world.turn(10);
  assert.deepEqual([...world.owners.keys()].filter((url) => !before.has(url)), []);
  const heard = [...world.subscribed].filter(([url, by]) => url.startsWith("connection:") && by.size);
  assert.deepEqual(heard, []);
  assert.deepEqual(world.connections.map(({ connectionState }) => connectionState), ["closed", "closed"]);
  await close();
});

test("the record of a delivery to a stub comes before that of what the stub sends, by the node and by a link", async () => {
  const { world, one, other, goLive, ask, close } = await pair();
  await goLive();
  await world.until(ask("by the link"));
  const sent = { node: 0, link: 0 };
  for (const { trace } of [one, other]) {
    const records = trace.text().trim().split("\n").map((line) => JSON.parse(line));
    records.forEach(({ op, mid, actor }, at) => {
      if (op !== "deliver" || !/^minibus:.*(p2prequester|protostub)/.test(actor)) return;
      const stub = actor.slice("minibus:".length);
      const own = records.findIndex((record) => record.op === "xmit" && record.mid === mid && record.stub === stub);
      if (own < 0) return;
      assert.ok(at < own, `${mid} was sent by ${stub} before it was delivered to it`);
      sent[stub.includes("/p2p") ? "link" : "node"] += 1;
    });
  }
  assert.ok(sent.node && sent.link, JSON.stringify(sent));
  await close();
});
