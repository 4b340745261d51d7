// Parts of a direct link with a peer that means harm.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Channel } from "../../web/src/p2p/channel.js";
import { CHANNEL_FRAMES, CHANNEL_WINDOW, CONTROL_BURST, CONTROL_BYTES, FRAME_MESSAGES, MAX_MALFORMED, ORDER_HELD, ORDER_SENT, ORDER_WAITS, PONG_TIMEOUT, REPLY_TIMEOUT } from "../../web/src/constants.js";
import { Counters } from "../../web/src/counters.js";
import { LiveLink } from "../../web/src/p2p/link.js";
import { PairOrder } from "../../web/src/p2p/order.js";
import { TransferCore } from "../../web/src/p2p/transfer.js";
import { Trace } from "../../web/src/trace.js";
import { FakeClock, PEER, RUNTIME, settle } from "./fake_node.js";

const OWN = "hyperty://a.ex/own";
const REFUSAL = [3, 1008 >> 8, 1008 & 0xff];
const TOO_LARGE = [3, 1009 >> 8, 1009 & 0xff];

class FakeDataChannel {
  sent = [];
  bufferedAmount = 0;
  isClosed = false;

  send(data) {
    this.sent.push(typeof data === "string" ? data : [...new Uint8Array(data)]);
  }

  close() {
    this.isClosed = true;
  }
}

function channel() {
  const raw = new FakeDataChannel();
  const clock = new FakeClock();
  return { raw, clock, channel: new Channel(raw, clock) };
}

const chunk = (...bytes) => new Uint8Array(bytes).buffer;

test("frames that nobody has taken wait in order, and the peer gets no credit for them", async () => {
  const { raw, channel: end } = channel();
  const frame = "x".repeat(16_384);
  const heard = [];
  end.onFrame = (one) => {
    heard.push(one);
    end.onFrame = null;
  };
  raw.onmessage({ data: "hello" });
  for (let sent = 0; sent < CHANNEL_WINDOW - 16_384; sent += frame.length) raw.onmessage({ data: frame });
  raw.onmessage({ data: "last" });
  assert.deepEqual([heard, raw.sent], [["hello"], []]);
  end.onFrame = (one) => heard.push(one);
  await settle();
  assert.deepEqual([heard.length, heard.at(-1), raw.isClosed], [33, "last", false]);
  assert.ok(raw.sent.length > 0 && raw.sent.every(([kind]) => kind === 2));
});

test("no number of tiny frames or chunks fills the memory", () => {
  for (const [data, most, farewell] of [
    ["", CHANNEL_FRAMES, REFUSAL], [chunk(1), CHANNEL_FRAMES, REFUSAL],
    [chunk(0), 256, TOO_LARGE], [chunk(0, 1), 256, TOO_LARGE],
  ]) {
    const { raw } = channel();
    for (let count = 0; count < most; count += 1) raw.onmessage({ data });
    assert.deepEqual([raw.isClosed, raw.sent], [false, []]);
    raw.onmessage({ data });
    assert.deepEqual([raw.isClosed, raw.sent], [true, [farewell]]);
  }
});

test("what one peer announces delays no messages of another, nor its own for ever", async () => {
  const clock = new FakeClock();
  const order = new PairOrder(clock);
  const given = [];
  const take = (link, id) => order.take({ id, type: "create", from: PEER, to: OWN, body: {} }, link, () => given.push([link, id]));
  order.announced({ from: PEER, to: OWN, last: 1e15, top: 1e15, age: -1e9 }, "attacker");
  take("attacker", 1);
  take("honest", 2);
  assert.deepEqual(given, [["honest", 2]]);
  await clock.turn(REPLY_TIMEOUT + 1);
  assert.deepEqual(given.at(-1), ["attacker", 1]);
});

test("a request by the node says nothing of answers, which may take another connection", () => {
  const order = new PairOrder(new FakeClock());
  const given = [];
  const message = (id, type) => ({ id, type, from: PEER, to: OWN, body: type === "response" ? { code: 200 } : {} });
  const sender = new PairOrder(new FakeClock());
  for (const [id, type] of [[7, "response"], [2, "read"]]) sender.sent(message(id, type));
  order.announced(sender.behind(PEER, OWN), "link");
  order.take(message(8, "response"), "link", () => given.push("answer"));
  order.take(message(3, "read"), "link", () => given.push("request"));
  order.came(message(2, "read"));
  assert.deepEqual(given, ["request"]);
  order.came(message(7, "response"));
  assert.deepEqual(given, ["request", "answer"]);
});

test("of one link, a bounded number of pairs and messages waits", () => {
  const order = new PairOrder(new FakeClock());
  let given = 0;
  const take = (from, link) => order.take({ id: 1, type: "create", from, to: OWN, body: {} }, link, () => (given += 1));
  for (let pair = 0; pair <= ORDER_WAITS; pair += 1) order.announced({ from: `${PEER}-${pair}`, to: OWN, last: 7, top: 7 }, "attacker");
  assert.ok(take(`${PEER}-${ORDER_WAITS}`, "attacker"));
  assert.equal(given, 1);
  for (let held = 0; held < ORDER_HELD; held += 1) assert.ok(take(`${PEER}-0`, "attacker"));
  assert.equal(take(`${PEER}-1`, "attacker"), false);
  order.announced({ from: PEER, to: OWN, last: 7, top: 7 }, "honest");
  assert.ok(take(PEER, "honest"));
  assert.equal(given, 1);
});

function liveLink(use = {}) {
  const { raw, clock, channel: end } = channel();
  const tools = { clock, counters: new Counters(), trace: new Trace({ node: "ra" }), runtime: RUNTIME };
  const nothing = { arrived() {}, announced() {}, ended() {} };
  const behind = (from, to) => ({ p2p: "behind", from, to });
  const link = new LiveLink("l1", end, { stub: `${RUNTIME}/p2phandler/1`, actor: "stub", tools, sender: null, behind, ...nothing, ...use });
  return { raw, tools, link, read: (...ids) => raw.onmessage({ data: ids.map(update).join("\n") }) };
}

const update = (id) => JSON.stringify({ id, type: "update", from: PEER, to: OWN, body: {} });
const read = ({ tools }) => tools.trace.text().match(/"op":"rcv"/g)?.length;

test("nothing is received on a link that this end has left, though its channel is still open", () => {
  const arrived = [];
  const one = liveLink({ arrived: ({ id }) => arrived.push(id) });
  one.read(1);
  one.link.leave();
  one.read(2);
  assert.deepEqual([arrived, read(one), one.raw.isClosed], [[1], 1, false]);
});

test("nothing is received on a link behind the message that made this end leave it", () => {
  const arrived = [];
  const one = liveLink({
    arrived: ({ id }) => {
      arrived.push(id);
      one.link.breakOff();
    },
  });
  one.read(1, 2);
  assert.deepEqual([arrived, read(one)], [[1], 1]);
});

test("a peer that sends malformed lines is answered ten times, and left then", () => {
  const ended = [];
  const { raw, tools } = liveLink({ ended: (...why) => ended.push(why) });
  const bad = (id) => JSON.stringify({ id, type: "nonsense", from: `${PEER}-${id}`, to: OWN, body: {} });
  raw.onmessage({ data: Array.from({ length: MAX_MALFORMED }, (_, id) => bad(id + 1)).join("\n") });
  assert.deepEqual([ended, raw.isClosed], [[], false]);
  raw.onmessage({ data: "\n" });
  assert.deepEqual(ended, [[false, "the peer writes too many malformed messages"]]);
  assert.equal(tools.counters.drops.get("malformed"), MAX_MALFORMED + 1);
});

test("a malformed answer is taken as a refusal, a malformed provisional one is counted", () => {
  const arrived = [];
  const one = liveLink({ arrived: ({ id, body }) => arrived.push([id, body.code]) });
  const line = (code) => `{"id":5,"type":"response","from":"${PEER}","to":"${OWN}","body":{"code":${code},"value":NaN}}`;
  one.raw.onmessage({ data: `${line(200)}\n${line(183)}` });
  one.read(6);
  assert.deepEqual([arrived, one.tools.counters.drops.get("malformed")], [[[5, 502], [6, undefined]], 2]);
  // Each line has a number, as its sender counts.
  assert.match(one.tools.trace.text(), /"seq":1\D[^]*"seq":3\D/);
});

test("a message that has crossed the link before goes round, and one that is too large is not written", () => {
  const arrived = [];
  const { raw, link, tools } = liveLink({ arrived: ({ id }) => arrived.push(id) });
  raw.onmessage({ data: JSON.stringify({ id: 1, type: "update", from: PEER, to: OWN, body: { via: [`${RUNTIME}/p2phandler/1`] } }) });
  raw.onmessage({ data: update(2) });
  assert.deepEqual([arrived, tools.counters.drops.get("loop")], [[2], 1]);
  const large = { id: 1, type: "create", from: OWN, to: PEER, body: { value: Array(5).fill("x".repeat(16_000)) } };
  assert.throws(() => link.send(large), { code: 413 });
  assert.throws(() => link.send({ ...large, body: { value: "\ud83d" } }), { code: 400 });
});

const control = (fields) => JSON.stringify({ p2p: "behind", from: PEER, to: OWN, ...fields });

/** Floods of a peer, each as frames; why the link is left then, and what is counted. */
const FLOODS = {
  "a long announcement": [[control({ to: `${OWN}/${"x".repeat(250_000)}` })], "a control line of a P2P link has more than 16384 bytes", "malformed"],
  "an announcement of no address": [[control({ to: "x" })], "not a control line of a P2P link", "malformed"],
  "an address that is too long": [[control({ to: `${OWN}/${"x".repeat(3000)}` })], "not a control line of a P2P link", "malformed"],
  "an announcement without its top": [[control({ last: 1, age: 0, answers: [] })], "an announcement on a P2P link lacks its top, its age or its answers", "malformed"],
  "a long ping": [[JSON.stringify({ p2p: "ping", x: "x".repeat(CONTROL_BYTES) })], "a control line of a P2P link has more than 16384 bytes", "malformed"],
  "lines without end": [["\n".repeat(FRAME_MESSAGES)], "a frame has more than 64 lines", "overflow"],
  pings: [Array(CONTROL_BURST + 1).fill('{"p2p":"ping"}'), "the peer writes too many control lines", "overflow"],
  "acknowledgements of nothing": [Array(CONTROL_BURST + 1).fill('{"p2p":"ack","seq":0}'), "the peer writes too many control lines", "overflow"],
  announcements: [Array(CONTROL_BURST + 1).fill(control({})), "the peer writes too many control lines", "overflow"],
};

for (const [name, [floods, why, drop]] of Object.entries(FLOODS)) {
  test(`a flood costs the peer the link: ${name}`, () => {
    const ended = [];
    const announced = [];
    const { raw, tools } = liveLink({ ended: (...all) => ended.push(all), announced: (line) => announced.push(line) });
    // A text within one message of the channel comes whole, a longer one in chunks.
    for (const flood of floods) {
      const bytes = new TextEncoder().encode(flood);
      for (let at = 0; at < bytes.length; at += 16_000) {
        raw.onmessage({ data: chunk(at + 16_000 < bytes.length ? 0 : 1, ...bytes.subarray(at, at + 16_000)) });
      }
    }
    assert.deepEqual(ended, [[false, why]]);
    assert.equal(tools.counters.drops.get(drop), 1);
    assert.ok(raw.isClosed);
    assert.ok(announced.length <= CONTROL_BURST);
  });
}

test("what waits for one link is bounded in bytes", () => {
  const order = new PairOrder(new FakeClock());
  order.announced({ from: PEER, to: OWN, last: 7, top: 7 }, "attacker");
  const large = { id: 1, type: "create", from: PEER, to: OWN, body: { value: "x".repeat(60_000) } };
  let held = 0;
  while (order.take(large, "attacker", () => {})) held += 1;
  assert.ok(held > 10 && held < 30, `${held}`);
  order.announced({ from: PEER, to: OWN, last: 7, top: 7 }, "honest");
  assert.ok(order.take(large, "honest", () => {}));
});

test("a link announces the youngest request and the last answers that may be under way by the node", async () => {
  const clock = new FakeClock();
  const order = new PairOrder(clock);
  const sent = (id, type = "read") => order.sent({ id, type, from: PEER, to: OWN, body: type === "response" ? { code: 200 } : {} });
  const behind = () => {
    const { last, top, age, answers } = order.behind(PEER, OWN);
    return { last, top, age, answers };
  };
  assert.deepEqual(behind(), { last: undefined, top: undefined, age: undefined, answers: undefined });
  for (const id of [5, 9, 7]) sent(id);
  await clock.turn(2);
  assert.deepEqual(behind(), { last: 9, top: 9, age: 2, answers: [] });
  for (let id = 1; id <= ORDER_SENT + 2; id += 1) sent(id, "response");
  const { last, answers, age } = behind();
  assert.deepEqual([typeof last, age, answers.length, answers[0]], ["string", 0, ORDER_SENT, 3]);
  // By then the request is over, and its age says of the answers when they are.
  await clock.turn(REPLY_TIMEOUT - 1);
  sent(ORDER_SENT + 3, "response");
  assert.equal(behind().top, 0);
  await clock.turn(REPLY_TIMEOUT + 1);
  assert.deepEqual([typeof behind().last, behind().age], ["string", REPLY_TIMEOUT + 1]);
});

test("a second copy of an answer is not what later messages of a link follow", () => {
  const order = new PairOrder(new FakeClock());
  const sent = (id) => order.sent({ id, type: "response", from: PEER, to: OWN, body: { code: 200 } });
  for (const id of [1, 2, 3]) sent(id);
  const { last } = order.behind(PEER, OWN);
  sent(1);
  assert.deepEqual(order.behind(PEER, OWN).last, last);
  sent(4);
  assert.notEqual(order.behind(PEER, OWN).last, last);
});

test("a copy of an answer that nobody waits for any more is not what later messages follow", async () => {
  const clock = new FakeClock();
  const order = new PairOrder(clock);
  const sent = (id) => order.sent({ id, type: "response", from: PEER, to: OWN, body: { code: 200 } });
  sent(1);
  await clock.turn(REPLY_TIMEOUT - 1);
  sent(2);
  await clock.turn(2);
  const { last } = order.behind(PEER, OWN);
  sent(1);
  assert.equal(order.behind(PEER, OWN).last, last);
  sent(3);
  assert.deepEqual(order.behind(PEER, OWN).answers, [2, 3]);
});

test("what has come makes room for what waits next, and what is younger than it is waited for does, too", async () => {
  const clock = new FakeClock();
  const order = new PairOrder(clock);
  const given = [];
  const message = (id, from, type = "read") => ({ id, type, from, to: OWN, body: type === "response" ? { code: 200 } : {} });
  const take = (id, from) => order.take(message(id, from), "link", () => given.push(id));
  const pairs = ORDER_WAITS - 2;
  // One pair waits all the time.
  order.announced({ from: PEER, to: OWN, last: 1e9, top: 1e9 }, "link");
  for (let round = 0; round < 3; round += 1) {
    const top = 10 * (round + 1);
    for (let pair = 0; pair < pairs; pair += 1) order.announced({ from: `${PEER}-${pair}`, to: OWN, last: top, top }, "link");
    for (let held = 0; held < ORDER_HELD; held += 1) assert.ok(take(held, `${PEER}-${held % pairs}`));
    assert.deepEqual([take("more", `${PEER}-0`), given.length], [false, round * ORDER_HELD]);
    // Announced once more it waits as before, and an answer is no request.
    order.announced({ from: `${PEER}-0`, to: OWN, last: top + 5, top: top + 5 }, "link");
    order.came(message(99, `${PEER}-0`, "response"));
    assert.equal(given.length, round * ORDER_HELD);
    for (let pair = 0; pair < pairs; pair += 1) order.came(message(top + 3, `${PEER}-${pair}`));
    assert.equal(given.length, (round + 1) * ORDER_HELD);
  }
  await clock.turn(REPLY_TIMEOUT + 1);
  assert.equal(given.length, 3 * ORDER_HELD);
});

test("a malformed message of a peer whose head can be read is answered over the link, and counted", () => {
  const made = liveLink();
  made.raw.onmessage({ data: `{"id":5,"type":"nothing","from":"${PEER}","to":"${OWN}","body":{}}` });
  const answers = made.raw.sent.flatMap((frame) => String(frame).split("\n")).map((line) => JSON.parse(line)).filter(({ type }) => type === "response");
  assert.deepEqual(answers.map(({ id, to, body }) => [id, to, body.code]), [[5, PEER, 400]]);
  assert.equal(made.tools.counters.drops.get("malformed"), 1);
});

test("who sends over a link is who the signatures of its set-up have proven, whatever a message says", () => {
  const sender = { runtime: "hyperty-runtime://a.ex/rb", user: null, vouchedBy: "none" };
  const arrived = [];
  const { raw } = liveLink({ sender, arrived: (message) => arrived.push(message) });
  const identity = { runtime: RUNTIME, user: "user://a.ex/alice", vouchedBy: "domain" };
  for (const [at, body] of [{}, { identity }].entries()) {
    raw.onmessage({ data: JSON.stringify({ id: at + 1, type: "create", from: PEER, to: OWN, body }) });
  }
  assert.deepEqual(arrived.map((one) => one.identity), [sender, sender]);
});

test("a peer that acknowledges some messages has time for the rest", () => {
  const transfer = new TransferCore(0);
  for (const id of [1, 2]) transfer.send({ id, type: "read", from: OWN, to: PEER, body: {} });
  transfer.takeOutput(0);
  transfer.heard({ p2p: "ack", seq: 1 }, PONG_TIMEOUT - 1);
  assert.equal(transfer.deadline, 2 * PONG_TIMEOUT - 1);
});
