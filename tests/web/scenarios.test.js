// The scenarios of the protocol, played by browser runtimes: all runtimes of a scenario are such,
// the nodes and the network between them are those of world.js. What they record is compared with
// the steps; steps of nodes, and of stubs to other domains, no browser can take.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Port } from "../../web/src/bus.js";
import { readLine, replyTo } from "../../web/src/message.js";
import { expanded, Score } from "./score.js";
import { settle, World } from "./world.js";


/** Scenarios that a browser does not play, and why. */
const NOT_PLAYED = {};

const LINES = ["scenarios", "new-scenarios"].flatMap((name) =>
  readFileSync(new URL(`../fixtures/${name}.jsonl`, import.meta.url), "utf8").trim().split("\n").map((line) => JSON.parse(line)));
const NAMES = [...new Set(LINES.map(({ sc }) => sc))];
/** Fields of lines that name a place: a macro, a name, the last part of an address, or `MN.a`. */
const PLACES = ["in", "by", "of", "object", "hyperty", "between", "asking", "asked", "allowed", "observers"];
const MORE_PLACES = { link: ["from", "to"], forge: ["from", "to"], denial: ["at"] };
/** What is said while links come about: no step shows it. */
const OWN_WORDS = "own words";

/** A hyperty whose answers the script gives, once it has the word. */
class Scripted {
  pending = [];
  answersItself = true;
  given = null;

  code = {
    request: (message) => this.#asked(message),
    subscribe: ({ object }) => this.#asked({ from: object, to: this.given.url, body: {} }),
  };

  #asked(message) {
    if (this.answersItself || message.body.value === OWN_WORDS) return null;
    return new Promise((resolve, reject) => this.pending.push({ message, resolve, reject }));
  }

  answer({ to, body: { code, value, description } }, post) {
    const at = this.pending.findIndex(({ message }) => message.from === to);
    assert.notEqual(at, -1, `no request of ${to} to answer`);
    // What a page sends as progress has another code.
    if (code < 200) return post(replyTo(this.pending[at].message, code, { ...(value === undefined ? {} : { value }), description }));
    const [{ resolve, reject }] = this.pending.splice(at, 1);
    return code < 300 ? resolve(value ?? null) : reject(Object.assign(new Error(), { name: "Refusal", code, reason: description }));
  }
}

class Play {
  world = new World();
  scripted = new Map();
  objects = new Map();
  copies = [];
  /** What was reported of the records that are followed. */
  statuses = [];
  /** Routes that are looked for behind a later message, and from which record on. */
  later = [];
  compared = 0;

  constructor(name) {
    this.lines = LINES.filter(({ sc }) => sc === name).map((line) => this.#written(line));
    this.steps = this.lines.filter(({ k }) => k);
    this.score = new Score(this.world, this.lines);
    for (const line of this.lines) if (!line.k) this.#resolve(line);
  }

  /** Replace the names of places in a line by addresses. */
  #resolve(line) {
    const nodes = new Map(this.given("node").map(({ domain }) => [`MN.${domain.split(".")[0]}`, `domain://msg-node.${domain}`]));
    const address = (place) => nodes.get(place) ?? (place.includes("://") ? place : this.score.address(place));
    for (const field of [...PLACES, ...(MORE_PLACES[line.given ?? line.do] ?? [])]) {
      if (Array.isArray(line[field])) line[field] = line[field].map(address);
      else if (typeof line[field] === "string") line[field] = address(line[field]);
    }
  }

  #written(line) {
    const { hop, ...rest } = line;
    return { ...expanded(rest), ...(hop ? { hop } : {}), ...(line.at ? { at: line.at } : {}) };
  }

  given(word) {
    return this.lines.filter((line) => line.given === word);
  }

  // ---- what is given

  async setUp() {
    const { world } = this;
    const running = [...this.given("hyperty"), ...this.given("kept address")];
    world.homes = new Map([...running, ...this.lines.filter((one) => one.do === "deploy")].map((one) => [one.is, one.in]));
    this.#nameAddresses();
    for (const { at, ...denial } of this.given("denial")) {
      if (at.startsWith("domain:")) world.denials.push(denial);
    }
    for (const node of this.given("node")) this.#serve(node);
    const begins = this.given("beginning").map(({ before }) => before);
    for (const { is, p2p, user } of this.given("runtime")) await world.open(is, { p2p, user, policy: this.#policy(is) });
    for (const one of this.given("hyperty")) await this.deploy(one);
    for (const { is, in: home, descriptor } of this.given("kept address")) {
      await this.deploy({ is, in: home, name: is, descriptor });
      await world.until(this.hyperty(is).rest());
    }
    for (const one of this.given("object")) await this.makeObject(one);
    for (const link of this.given("link")) if (link.state !== "connecting") await this.makeLive(link);
    if (begins.includes("observers")) this.score.mark = world.seen.length;
    for (const one of this.given("object")) for (const observer of one.observers ?? []) await this.observe(observer, one.is);
    for (const { is, status } of this.given("hyperty")) {
      if (status && status !== "live") world.records.get(is).status = status;
    }
    if (!begins.length) this.score.mark = world.seen.length;
    for (const { is, answers } of this.given("hyperty")) this.scripted.get(is).answersItself = Boolean(answers);
    for (const { state, asking, asked } of this.given("link")) {
      if (state === "connecting") for (const one of asking) for (const other of asked) this.ask(one, other);
    }
  }

  /** Let nodes allocate the addresses of the scenario, in its order. */
  #nameAddresses() {
    const { names } = this.world;
    const given = this.given("object").filter(({ by }) => by).map(({ is }) => is);
    const allocated = this.steps.flatMap(({ msg }) => msg?.body?.value?.allocated ?? []);
    const seen = this.steps.flatMap((step) => JSON.stringify(step.msg ?? {}).match(/connection:\/\/[^/]+\/[a-z0-9]+/g) ?? []);
    for (const one of new Set([...given, ...allocated, ...seen])) {
      const [scheme, , domain] = one.split("/");
      const key = `${scheme.slice(0, -1)} ${domain}`;
      names.set(key, [...(names.get(key) ?? []), one]);
    }
  }

  #serve({ domain, records = {}, relays = [] }) {
    const { services } = this.world;
    if (Object.keys(records).length) {
      services.set("global://registry", ({ body }) => ({ code: 200, description: "OK", value: records[body.resource] }));
    }
    if (relays.length) services.set(`domain://qos.${domain}`, () => ({ code: 200, value: relays[0] }));
  }

  #policy(runtime) {
    const denials = this.given("denial").filter(({ at }) => at === runtime);
    if (!denials.length) return undefined;
    return ({ type, from, to }) => denials.find((one) => one.type === type && one.from === from && one.to === to)?.why ?? null;
  }

  async deploy({ is, in: home, name, descriptor, resources, data_schemes: dataSchemes }) {
    const [, , domain] = is.split("/");
    const { names } = this.world;
    names.set(`hyperty ${domain}`, [is, ...(names.get(`hyperty ${domain}`) ?? [])]);
    const one = new Scripted();
    this.scripted.set(is, one);
    const deploying = this.world.runtimes.get(home).deploy(name ?? is, one.code, { descriptor, resources, dataSchemes });
    one.given = await this.world.until(deploying);
    assert.equal(one.given.url, is);
    await this.world.until(one.given.loadObjects());
  }

  hyperty(url) {
    return this.scripted.get(url).given;
  }

  async makeObject({ is, by, schema, version = 1, data, allowed = [] }) {
    const { world } = this;
    if (!by) return this.#reportOutside(is, version, data);
    const value = data ?? { t: version };
    const object = await world.until(this.hyperty(by).report(schema, value, { name: "object", allow: allowed }));
    assert.equal(object.url, is);
    const [[attribute, last]] = Object.entries(value);
    for (let at = 1; at < version; at += 1) await world.until(object.set(attribute, last));
    this.objects.set(is, object);
    return undefined;
  }

  /** Have a peer that is no browser report an object. */
  #reportOutside(url, version, data = { t: version }) {
    const value = { url, version, data, children: {} };
    this.world.services.set(`${url}/subscription`, () => ({ code: 200, value }));
    this.world.services.set(url, () => ({ code: 200, value }));
  }

  async observe(observer, url) {
    this.copies.push([observer, await this.world.until(this.hyperty(observer).observe(url))]);
  }

  /** Who follows a record knows what it was, and what its registry has reported of it. */
  compareStatuses() {
    if (!this.lines.some(({ do: word }) => word === "watch")) return;
    const before = this.given("hyperty").map(({ status }) => status).filter(Boolean);
    const reported = this.steps.filter(({ msg }) => msg?.to.endsWith("/registration")).map(({ msg }) => msg.body.value);
    assert.deepEqual(this.statuses, [...before, ...reported]);
  }

  /** Who observes an object still has its value. */
  compareCopies() {
    for (const [observer, { url, value, version }] of this.copies) {
      const object = this.objects.get(url);
      if (!this.world.subscribed.get(`${url}/changes`).has(this.world.homes.get(observer))) continue;
      assert.deepEqual([value, version], [object.value, object.version], observer);
    }
  }

  ask(asker, asked) {
    void this.hyperty(asker).ask("create", asked, { value: OWN_WORDS });
    const pair = [asker, asked].map((one) => this.world.homes.get(one));
    // Once the link is live it is used, so that the other end learns the addresses here.
    const look = () => {
      if (!this.isLive(pair)) return;
      this.world.watchers.delete(look);
      void this.hyperty(asker).ask("create", asked, { value: OWN_WORDS });
    };
    this.world.watchers.add(look);
  }

  isLive([one, other]) {
    const isLinked = (here, there) => this.world.runtimes.get(here).p2p.some(({ runtime, isLive }) => isLive && runtime === there);
    return isLinked(one, other) && isLinked(other, one);
  }

  async makeLive({ from, to, asking, asked }) {
    const { world } = this;
    for (let round = 0; round < 2; round += 1) {
      for (const one of asking) for (const other of asked) {
        await world.until(this.hyperty(one).ask("create", other, { value: OWN_WORDS }));
      }
      assert.ok(await world.waitFor(() => this.isLive([from, to])), "the link becomes live");
    }
  }

  // ---- what is done

  async act({ do: word, ...line }, step) {
    const { world } = this;
    const { msg } = step;
    const { via: _, ...body } = msg?.body ?? {};
    const bus = () => world.runtimes.get(world.homes.get(line.by)).bus;
    switch (word) {
      case "send": {
        const message = { id: bus().nextId(line.by), type: msg.type, from: msg.from, to: msg.to, body };
        return bus().submit(message, line.by, step.event ? {} : { reply: () => {} });
      }
      case "answer":
        return this.scripted.get(line.by).answer(msg, (answer) => bus().submit(answer, line.by));
      case "change":
        return this.#change(this.objects.get(msg.from), body);
      case "publish":
        for (const url of world.subscribed.get(msg.to)) world.seats.get(url).bring({ ...msg, body: { ...body } });
        return undefined;
      case "order": {
        const { bus: its } = world.runtimes.get(line.by.split("/").slice(0, 4).join("/"));
        if (line.by.endsWith("/graph-connector")) its.grant(line.by, line.by);
        return void new Port(its, line.by).ask(msg.type, msg.to, body);
      }
      case "ask":
        return this.ask(line.by, line.of);
      case "observe":
        return void this.hyperty(line.by).observe(line.object);
      case "deploy":
        return this.deploy(line);
      case "forge": {
        const { url } = world.seats.get(line.to);
        const via = [`${url}/protostub/1`];
        return world.seats.get(line.to).bring({ ...msg, body: { ...body, via } });
      }
      case "reuse":
        return this.#reuse(line);
      case "watch":
        return void (await world.until(world.runtimes.get(line.in).follow(line.hyperty, (status) => this.statuses.push(status))));
      case "control":
      case "log in":
        return undefined;
      default:
        throw new Error(`nobody does ${word}`);
    }
  }

  async #reuse({ in: home, descriptor, address, result }) {
    const { world } = this;
    const mark = world.seen.length;
    const deploying = world.until(world.runtimes.get(home).deploy("any", {}, { descriptor, address }));
    if (result === "not found") await assert.rejects(deploying, RangeError);
    else {
      const { url } = await deploying;
      const kept = this.given("kept address").map(({ is }) => is);
      if (result === "new") assert.ok(!kept.includes(url), url);
      else assert.equal(url, result);
    }
    const isAllocated = world.seen.slice(mark).some(({ message: { type, to } = {} }) => type === "create" && to.endsWith("/address-allocation"));
    assert.equal(isAllocated, result === "new");
  }

  #change(object, { attribute, value, operation }) {
    if (operation === "add") return void object.add(attribute, ...value);
    if (operation === "remove") return void object.discard(attribute, ...value);
    return void (value === undefined ? object.remove(attribute) : object.set(attribute, value));
  }

  async fault({ fault: word, between, of }) {
    const { world } = this;
    const isLink = between?.every((one) => one.startsWith("hyperty-runtime:"));
    const seat = world.seats.get(of ?? between?.find((one) => world.seats.has(one)));
    this.score.mark = world.seen.length;
    if (word === "link cut" && isLink) world.cutChannels(...between);
    else if (word === "link cut") seat.cut();
    else if (word === "peer vanishes") seat.vanish();
    else if (word === "peer silent") world.silent.add([...between].sort().join(" "));
    else if (word === "runtime shutdown") await world.until(world.runtimes.get(of).close());
    else throw new Error(`nobody does ${word}`);
  }

  // ---- steps

  async run() {
    await this.setUp();
    const acts = [];
    for (const line of this.lines) {
      if (line.do || line.fault) acts.push(line);
      else if (line.k) {
        let from = this.score.mark;
        if (acts.length) await settle();
        for (const act of acts.splice(0)) {
          if (act.fault) await this.fault(act);
          // Of children, the part of the reporter in its runtime answers by itself.
          if (act.do === "answer" && line.msg.from.includes("/children/")) continue;
          from = act.fault ? this.score.mark : this.world.seen.length;
          if (act.do) await this.act(act, line);
        }
        await this.step({ ...line, steps: this.steps }, from);
      }
    }
    for (const [step, from] of this.later) await this.look(step, from);
    assert.ok(this.compared, "browsers take part");
    this.compareStatuses();
    this.compareCopies();
    await this.world.close();
  }

  async step(step, from) {
    const { world } = this;
    if (step.k === "time") {
      await world.turn(step.dt + 0.01);
      return world.expire();
    }
    if (step.k === "ingest") return this.ingest(step);
    if (this.score.notOurs(step)) return undefined;
    if (step.k === "resolve") return void this.later.push([step, from]);
    await this.look(step, from);
    for (const [one, mark] of this.later.splice(0)) {
      if (step.k === "msg" && one.to === step.msg.to) await this.look(one, mark);
      else this.later.push([one, mark]);
    }
    return undefined;
  }

  async look(step, from) {
    this.compared += 1;
    const isSeen = await this.world.waitFor(() => this.score.holds(step, from));
    const { steps: _, sc: __, ...shown } = step;
    assert.ok(isSeen, `step ${step.n} was not seen: ${JSON.stringify(shown)}\nseen:\n${isSeen || this.score.like(step)}`);
    if (step.deliver_to?.length === 0) {
      const isHeard = this.world.seen.some((one, at) => at >= from && one.op === "rcv" && one.message?.to === step.msg.to);
      assert.ok(!isHeard, `step ${step.n} reaches nobody`);
    }
  }

  ingest({ raw, norm }) {
    this.compared += 1;
    const { body, ...read } = readLine(JSON.stringify(raw));
    assert.deepEqual({ ...read, body: { ...body } }, norm);
  }
}

for (const name of NAMES) {
  // A new scenario is played, or listed with a reason.
  if (!(name in NOT_PLAYED)) test(`${name} is played by browsers`, () => new Play(name).run());
}

test("what is not played is a scenario, and a browser cannot play it", async () => {
  for (const name of Object.keys(NOT_PLAYED)) {
    assert.ok(NAMES.includes(name), name);
    await assert.rejects(() => new Play(name).run(), name);
  }
});
