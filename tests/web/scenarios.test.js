// Scenarios of the protocol, as far as one runtime takes part in them: the node and all others are
// played, the runtime is that of the browser. A step is seen from this runtime: what it sends over
// the wire and what its hyperties hear has to be what the scenario says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openRuntime } from "../../web/src/index.js";
import { FakeNode, settle } from "./fake_node.js";

const FILE = new URL("../fixtures/scenarios.jsonl", import.meta.url);
const LINES = readFileSync(FILE, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const PLAYED = [
  ["SC-01", "RA"], ["SC-02", "RA"], ["SC-03", "RA"], ["SC-11", "RB"], ["SC-13", "RA"],
  ["SC-13", "hyperty-runtime://a.ex/rx"], ["SC-14", "RA"], ["SC-14", "RB"], ["SC-15", "RA"],
  ["SC-15", "RB"], ["SC-39", "RA"],
];

/** A short name: RA is the runtime `ra` of a.ex, HA2 the hyperty `ha2` there. */
const whole = (name) => {
  const [, kind, letter, number] = /^([RH])([A-C])([0-9]?)$/.exec(name) ?? [];
  if (!kind) return name;
  const domain = `${letter.toLowerCase()}.ex`;
  const local = `${kind}${letter}${number}`.toLowerCase();
  return `${kind === "R" ? "hyperty-runtime" : "hyperty"}://${domain}/${local}`;
};


class Play {
  constructor(scenario, short) {
    this.lines = LINES.filter(({ sc }) => sc === scenario);
    this.short = short;
    this.url = whole(short);
    const [, , domain, name] = this.url.split("/");
    this.node = new FakeNode(domain, name);
    this.code = new Map();
    this.own = new Map();
    this.pending = [];
    this.answers = [];
    this.ids = new Map();
    this.checked = 0;
  }

  async begin() {
    const { node } = this;
    const [, , domain, name] = this.url.split("/");
    const options = { domain, name, node: "wss://node/link", key: null, trace: true, clock: node.clock };
    const opening = openRuntime({ ...options, connect: node.connect });
    await settle();
    this.runtime = await opening;
    for (const given of this.lines) {
      if (given.given === "hyperty" && whole(given.in) === this.url) await this.deploy(given);
    }
    node.messages.length = 0;
  }

  async deploy({ is, answers, descriptor, resources, data_schemes: dataSchemes }) {
    const url = whole(is);
    this.node.addresses.push(url);
    const request = (message) => {
      if (answers) return null;
      return new Promise((resolve, reject) => this.pending.push({ message, resolve, reject }));
    };
    const deploying = this.runtime.deploy(is, { request }, { descriptor, resources, dataSchemes });
    await settle();
    this.own.set(url, await deploying);
  }

  async run() {
    await this.begin();
    let act = null;
    for (const line of this.lines) {
      if (line.do === "deploy" && whole(line.in) === this.url) await this.deploy(line);
      else if (line.do) act = line;
      else if (line.k) {
        await this.step(line, act);
        act = null;
      }
    }
    await settle();
    assert.ok(this.checked, "the runtime takes part");
  }

  isOwn(place) {
    const inner = /^sandbox\((.*)\)$/.exec(place)?.[1] ?? place;
    return inner.startsWith(`${this.short}.`) || this.own.has(whole(inner)) ||
      [...this.own.keys()].some((url) => url.endsWith(`/${inner}`)) ||
      (this.short.startsWith("hyperty-runtime") && inner.startsWith("RX."));
  }

  async step(line, act) {
    if (line.k === "time") return this.node.clock.turn(line.dt + 0.01);
    if (line.k === "resolve" && line.at === `${this.short}.registry`) return this.resolved(line);
    if (line.k !== "msg") return undefined;
    const places = line.hop.split(/~wire~|>/);
    const isHere = places.map((place) => this.isOwn(place));
    if (act?.do === "send" && isHere[0]) this.send(line, act);
    if (act?.do === "answer" && isHere[0]) this.answer(line);
    await settle();
    const toWire = /~wire~MN/.test(line.hop) && (isHere[0] || line.dup && this.isStub(places[0]));
    if (toWire) this.sent(line);
    const isInbound = !isHere[0] && (isHere.some(Boolean) || act?.do === "forge" && whole(act.to) === this.url);
    if (isInbound && !toWire) await this.inject(line, act);
    const last = places.at(-1);
    if (this.isOwn(last) && !last.includes(".") && !line.drop) this.heard(line);
    if (line.drop && (isHere[0] || isInbound)) this.dropped(line);
    return undefined;
  }

  /** SA, SAB, SB: stubs of the runtime whose letter comes first. */
  isStub(place) {
    return /^S[A-C]+$/.test(place) && place[1] === this.short[1];
  }

  send({ msg, hop }, { by }) {
    const hyperty = this.own.get(whole(by));
    const { type, to, from } = msg;
    const { via: _, ...body } = msg.body;
    const provisional = (message) => this.answers.push(message);
    const asking = hop.startsWith("sandbox(")
      ? this.runtime.bus.submit({ id: 99, type, from, to, body }, hyperty.url, { reply: provisional })
      : hyperty.ask(type, to, body, { provisional }).then(provisional);
    void asking;
  }

  answer({ msg }) {
    const at = this.pending.findIndex(({ message }) => message.from === msg.to);
    const { message, resolve, reject } = this.pending[at];
    const { code, value, description } = msg.body;
    if (code < 200) return this.own.get(message.to).progress(message, value);
    this.pending.splice(at, 1);
    return code < 300 ? resolve(value) : reject(Object.assign(new Error(), { name: "Refusal", code, reason: description }));
  }

  sent({ msg }) {
    const at = this.node.messages.findIndex(
      ({ type, from, to }) => type === msg.type && from === msg.from && to === msg.to,
    );
    assert.notEqual(at, -1, `${JSON.stringify(msg)} over the wire`);
    const [message] = this.node.messages.splice(at, 1);
    this.ids.set(`${msg.from} ${msg.to} ${msg.id}`, message.id);
    this.matches(message.body, msg.body);
  }

  async inject({ msg }) {
    const { via = [], ...body } = msg.body ?? {};
    const id = this.ids.get(`${msg.to} ${msg.from} ${msg.id}`) ?? msg.id;
    const isForged = via.some((stub) => stub.startsWith(this.url)) && via.length === 1;
    const known = isForged ? [this.node.stub] : via.filter((stub) => !stub.startsWith(this.url));
    this.node.say({ ...msg, id, body: known.length ? { ...body, via: known } : body });
    await settle();
  }

  heard({ msg }) {
    if (msg.type === "response") {
      const at = this.answers.findIndex(({ from }) => from === msg.from);
      assert.notEqual(at, -1, `the answer ${JSON.stringify(msg)}`);
      const [answer] = this.answers.splice(at, 1);
      // Provisional answers of a browser all say 183.
      if (msg.body.code >= 200) this.matches(answer.body, msg.body);
      else assert.ok(answer.body.code < 200);
    } else {
      const found = this.pending.find(({ message }) => message.from === msg.from && message.to === msg.to);
      assert.ok(found, `${JSON.stringify(msg)} at its receiver`);
      this.matches(found.message.body, msg.body);
    }
  }

  dropped({ drop }) {
    this.checked += 1;
    const reason = drop.split(":")[0];
    assert.ok(this.runtime.counters.drops.get(reason) >= 1, drop);
  }

  resolved({ to, result }) {
    this.checked += 1;
    const done = this.runtime.trace.text().trim().split("\n").map((one) => JSON.parse(one))
      .filter((one) => one.k === "resolve" && one.op === "done" && one.to === to);
    assert.equal(done.length > 0, result !== null);
  }

  /** What a scenario says of a body has to be so; texts for people are free. */
  matches(body, wanted = {}) {
    this.checked += 1;
    const { via: _, description: __, ...rest } = wanted;
    for (const [key, value] of Object.entries(rest)) {
      if (key === "value" && value?.runtime) {
        const { p2pHandler, p2pRequester, user, ...plain } = value;
        for (const [name, one] of Object.entries(plain)) assert.deepEqual(body.value[name], one, name);
      } else assert.deepEqual(body[key], value, key);
    }
  }
}

for (const [scenario, short] of PLAYED) {
  test(`${scenario} with ${short} in a browser`, () => new Play(scenario, short).run());
}
