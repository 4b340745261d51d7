// Compares what browser runtimes have recorded with the steps of a scenario (docs/scenarios.md).

import { runtimeOf } from "../../web/src/address.js";
import { isObject } from "../../web/src/json.js";

const MACROS = {
  MNA: "domain://msg-node.a.ex", MNB: "domain://msg-node.b.ex",
  DRA: "domain://registry.a.ex", DRB: "domain://registry.b.ex",
  C1: "connection://a.ex/c1", C2: "connection://b.ex/c2", OBJ: "comm://a.ex/o1",
  SA: "hyperty-runtime://a.ex/ra/protostub/1", SAB: "hyperty-runtime://a.ex/ra/protostub/2",
  SB: "hyperty-runtime://b.ex/rb/protostub/1", SBA: "hyperty-runtime://b.ex/rb/protostub/2",
  PQ: "hyperty-runtime://a.ex/ra/p2prequester/1", PH: "hyperty-runtime://b.ex/rb/p2phandler/1",
  PHC: "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1",
  SCH: "hyperty-catalogue://catalogue.a.ex/.well-known/dataschema/Connection",
  SCM: "hyperty-catalogue://catalogue.a.ex/.well-known/dataschema/Communication",
  CRQ: "hyperty-catalogue://catalogue.b.ex/.well-known/protocolstub/P2PRequester",
};
for (const domain of "abc") {
  MACROS[`R${domain.toUpperCase()}`] = `hyperty-runtime://${domain}.ex/r${domain}`;
  for (const number of ["", "2"]) {
    MACROS[`H${domain.toUpperCase()}${number}`] = `hyperty://${domain}.ex/h${domain}${number}`;
  }
}
const PARTS = { alloc: "address-allocation", graph: "graph-connector", registry: "registry", sm: "sm", ua: "ua" };
const MACHINES = {
  deploy: "stub_deployment", p2p: "p2p_connection", stub: "stub_connection", subscription: "object_subscription",
};
/** Machines of nodes; those of a browser's trace have other names. */
const OF_NODES = new Set(["session", "alloc", "registration", "address"]);
const OFFERED = new Set(["candidates", "iceCandidates", "sdp"]);
const HOP = /\.\.|~wire~|=\w+=|>|(?:(?!\.\.|~wire~|=\w+=|>).)+/g;
/** A stub that leads to another domain than the own one: a browser has none. */
const FOREIGN_STUB = /^(hyperty-runtime:\/\/[^/]+\/[^/]+)\/protostub\/(?!1$)[0-9]+$/;

/** Write out the macros in a value, alone or before a slash. */
export function expanded(value) {
  if (Array.isArray(value)) return value.map(expanded);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, expanded(one)]));
  if (typeof value !== "string") return value;
  const [, root, rest] = /^([A-Z0-9]+)(\/.*)?$/s.exec(value) ?? [];
  return root in MACROS ? MACROS[root] + (rest ?? "") : value;
}

/** Compares one scenario with the records of a world. */
export class Score {
  #world;
  #places = new Map();
  #versions = new Map();
  #links = new Map();
  #used = new Set();
  /** Records before this one came before the last fault. */
  mark = 0;

  constructor(world, lines) {
    this.#world = world;
    for (const text of JSON.stringify(lines).match(/[a-z-]+:\/\/[^"|\\]+/g) ?? []) {
      const name = text.split("/").at(-1).toLowerCase();
      if (!this.#places.has(name)) this.#places.set(name, text);
    }
    for (const { given, is, for: address } of lines) if (given === "name") this.#places.set(is.toLowerCase(), address);
    // Direct places are meant, and no paths below them.
    for (const { given, is } of lines) if (is && given !== "name") this.#places.set(is.split("/").at(-1).toLowerCase(), is);
  }

  /** Return why a step cannot be seen of a browser; null: it can. */
  notOurs(step) {
    if (step.k === "fault" || step.k === "call" || step.k === "time") return "a remark";
    if (step.k === "state") {
      const key = [step.key].flat()[0];
      if (OF_NODES.has(step.machine) || /^(MN\.|domain:)/.test(key)) return "of a node";
      if (FOREIGN_STUB.test(key)) return "of a stub to another domain";
    }
    if (step.k === "table" || step.k === "resolve" || step.k === "authz") {
      if (step.at.startsWith("MN.")) return "of a node";
    }
    if (step.k !== "msg") return null;
    if (step.control) return "of a link's control";
    if (FOREIGN_STUB.test(step.msg.from)) return "of a stub to another domain";
    const { needs } = this.#route(step);
    return needs.length ? null : "of a node";
  }

  /** Return whether a step was seen. */
  holds(step, from = this.mark) {
    switch (step.k) {
      case "msg":
        return this.#message(step, from);
      case "state":
        return step.machine === "link" ? this.#link(step, from) : this.#state(step, from);
      case "table":
        return this.#row(step, from);
      case "resolve":
        return this.#resolved(step, from);
      case "authz":
        return this.#ruled(step, from);
      default:
        throw new Error(`a step of the kind ${step.k}`);
    }
  }

  /** Say what was seen that is like a step. */
  like(step) {
    const { seen } = this.#world;
    const { msg, machine, table } = step;
    const isLike = (one) => {
      if (msg) return one.k === "msg" && one.message.type === msg.type && one.message.to === msg.to;
      if (step.k === "resolve") return one.to === step.to || one.message?.to === step.to;
      return one.k === step.k && (one.machine === (MACHINES[machine] ?? machine) && one.table === table);
    };
    const shown = ({ message, mid: _, ...rest }) =>
      JSON.stringify(message ? { ...rest, from: message.from, body: message.body } : rest).slice(0, 400);
    return seen.map((one, at) => [at, one]).filter(([, one]) => isLike(one))
      .map(([at, one]) => `${at < this.mark ? "before " : ""}${at} ${shown(one)}`).slice(-14).join("\n");
  }

  // ---- places

  /** Return the address that a place means; null: nothing says which. */
  address(place) {
    const word = /^sandbox\((.*)\)$/.exec(place)?.[1] ?? place.replace(/\(.*\)$/, "");
    const [root, part] = word.includes("://") ? [word] : word.split(".");
    if (root === "MN") return null;
    const [head, ...rest] = root.split("/");
    const found = MACROS[head] ?? this.#places.get(head.toLowerCase()) ?? null;
    if (!found) return null;
    const whole = [found, ...rest].join("/");
    return part in PARTS ? `${whole}/${PARTS[part]}` : whole;
  }

  #who(place) {
    const url = this.address(place);
    if (!url) return null;
    if (url.startsWith("hyperty-runtime://")) return url.split("/")[3];
    return this.#world.owners.get(url)?.split("/")[3] ?? this.#world.homes?.get(url)?.split("/")[3] ?? null;
  }

  /** Return what has to be seen of a message. */
  #route(step) {
    const tokens = step.hop.match(HOP) ?? [];
    const isPlace = (token) => token !== undefined && !/^(\.\.|~wire~|=\w+=|>)$/.test(token);
    const needs = [];
    const need = (place, ops, more = {}) => {
      const who = this.#who(place);
      if (who) needs.push({ who, ops, ...more });
    };
    for (const [at, token] of tokens.entries()) {
      const [before, after] = [tokens[at - 1], tokens[at + 1]];
      if (token === "~wire~") {
        for (const [place, op] of [[before, "xmit"], [after, "rcv"]]) {
          const isLost = step.drop && at === tokens.length - 2 && op === "rcv";
          if (isPlace(place) && !place.startsWith("MN") && !isLost) need(place, [op], { by: "node" });
        }
      } else if (/^=/.test(token)) {
        const link = token.slice(1, -1);
        for (const [place, op] of [[before, "xmit"], [after, "rcv"]]) {
          const stub = isPlace(place) ? this.address(place) : null;
          if (stub) need(place, [op], { by: "link", link, stub: /p2p(requester|handler)/.test(stub) ? stub : null });
          else needs.push({ who: null, ops: [op], by: "link", link });
        }
      } else if (isPlace(token) && /\.bus$/.test(token)) need(token, ["submit", "synth"]);
    }
    const [first] = tokens;
    const last = tokens.at(-1);
    const isSent = isPlace(first) && tokens[1] !== "~wire~" && !/\.bus$/.test(first) && !step.dup;
    if (isSent) need(first.replace(/ .*$/, ""), ["submit", "synth"]);
    const isDenied = step.steps?.some(({ k, ref, decision, at }) =>
      k === "authz" && ref === step.n && decision === "deny" && !at.startsWith("MN."));
    // A message that is denied ends where the ruling is.
    if (isDenied) need(first, ["deny"]);
    else if (step.drop) need(last, ["drop", "deny"], { reason: step.drop.split(":")[0] });
    else if (isPlace(last) && tokens.at(-2) !== "~wire~") {
      for (const place of last.replace(/[{}]/g, "").split(",")) {
        if (!/\.bus$/.test(place)) need(place, ["deliver", "callback"], { at: /\(/.test(place) ? null : this.address(place) });
      }
    }
    return { needs };
  }

  // ---- kinds of steps

  #message(step, from) {
    const { msg } = step;
    const { needs } = this.#route(step);
    const { seen } = this.#world;
    const instances = new Map();
    for (let at = from; at < seen.length; at += 1) {
      const fact = seen[at];
      if (fact.k !== "msg" || fact.message.type !== msg.type || fact.message.to !== msg.to) continue;
      if (fact.message.from !== msg.from) continue;
      instances.set(fact.mid, [...(instances.get(fact.mid) ?? []), fact]);
    }
    for (const [mid, facts] of instances) {
      if (this.#used.has(mid) && !step.dup) continue;
      const trial = this.#copy();
      const subject = runtimeOf(msg.from) ?? msg.from;
      const isSame = facts.some(({ message }) => this.#body(msg.body ?? {}, message.body, subject, trial));
      if (!isSame || !needs.every((one) => facts.some((fact) => this.#meets(fact, one, trial)))) continue;
      this.#take(trial);
      this.#used.add(mid);
      return true;
    }
    return false;
  }

  #meets(fact, { who, ops, by, link, stub, reason, at }, trial) {
    if (!ops.includes(fact.op) || (who && fact.who !== who)) return false;
    if (reason && fact.reason !== reason) return false;
    if (by === "node") return fact.stub?.includes("/protostub/") ?? false;
    if (by === "link") {
      if (!fact.stub || fact.stub.includes("/protostub/") || (stub && fact.stub !== stub)) return false;
      if ((trial.links.get(link) ?? fact.link) !== fact.link) return false;
      if (!trial.links.has(link) && [...trial.links.values()].includes(fact.link)) return false;
      trial.links.set(link, fact.link);
      return true;
    }
    if (at?.startsWith("hyperty:") && fact.op === "deliver") return [`minibus:${at}`, at].includes(fact.listener);
    return true;
  }

  #state(step, from) {
    const { seen } = this.#world;
    const machine = MACHINES[step.machine] ?? step.machine;
    const parts = [step.key].flat().flatMap((one) => one.split("|"));
    const old = step.old ?? "[*]";
    const isOne = (fact) => {
      if (fact.k !== "state" || fact.machine !== machine) return false;
      const left = fact.key.split("|");
      return parts.every((part) => {
        while (left.length) if (left.shift() === part) return true;
        return false;
      });
    };
    const begun = new Set();
    for (let at = from; at < seen.length; at += 1) {
      const fact = seen[at];
      if (!isOne(fact)) continue;
      if (fact.old === old) begun.add(fact.key);
      if (!begun.has(fact.key) || fact.new !== step.new || this.#used.has(fact)) continue;
      this.#used.add(fact);
      return true;
    }
    return false;
  }

  #link({ key, new: entered }, from) {
    const op = entered === "open" ? "open" : "close";
    const fact = this.#world.seen.find((one, at) => at >= from && one.k === "link" && one.op === op && !this.#used.has(one) &&
      (this.#links.get(key) ?? one.link) === one.link && (this.#links.has(key) || ![...this.#links.values()].includes(one.link)));
    if (!fact) return false;
    this.#used.add(fact);
    this.#links.set(key, fact.link);
    return true;
  }

  #row(step, from) {
    const at = this.#at(step.at);
    let isThere = false;
    return this.#world.seen.some((fact, index) => {
      if (index < from || fact.k !== "table" || fact.table !== step.table || fact.who !== at.who) return false;
      if (fact.key !== expanded(step.key)) return false;
      if (at.part && !(fact.actor === at.part || fact.actor.startsWith("minibus:"))) return false;
      isThere = fact.op === "add" || (isThere && fact.op === "upd");
      const isIt = fact.op === step.op || (step.op === "add" && isThere);
      return isIt && this.#rowHolds(step, fact);
    });
  }

  #rowHolds({ val, table }, fact) {
    if (val === undefined || val === null || table === "listeners") return true;
    if (!isObject(val)) return fact.val === expanded(val.split("@").at(-1));
    const [status, url, ...entities] = fact.val.split(" ");
    const row = { status, url: url === "None" ? null : url, entities: entities.filter(Boolean) };
    return Object.entries(val).every(([key, one]) =>
      Array.isArray(one) ? one.length === row[key].length && one.every((entity) => row[key].includes(entity)) : row[key] === one);
  }

  #resolved({ at, to, result }, from) {
    const { who } = this.#at(at);
    const home = result?.replace(FOREIGN_STUB, "$1/protostub/1");
    return this.#world.seen.some((fact, index) => {
      if (index < from || fact.who !== who) return false;
      const isRefused = fact.op === "synth" && fact.message.from === to && fact.message.body.code === 404;
      if (isRefused && !result) return true;
      if (fact.op === "xmit" && result) return fact.message.to === to && fact.stub === home;
      if (fact.k !== "resolve" || fact.to !== to) return false;
      // A browser looks for a link beside the way by its node.
      return result ? fact.result === home : fact.op === "start" || fact.result === undefined;
    });
  }

  #ruled({ at, decision, ref, steps }, from) {
    const { who } = this.#at(at);
    const { msg } = steps.find(({ n }) => n === ref);
    return this.#world.seen.some((fact, index) => {
      if (index < from || fact.who !== who) return false;
      if (fact.k === "msg") return decision === "deny" && fact.op === "deny" && fact.message.to === msg.to;
      if (fact.k !== "authz" || fact.decision !== decision) return false;
      const about = this.#world.seen.find((one) => one.mid === fact.mid && one.k === "msg");
      return about?.message.to === msg.to && about.message.from === msg.from;
    });
  }

  #at(place) {
    const part = { bus: "bus", registry: "registry", sm: "sm" }[place.split(".").at(-1)];
    return { who: this.#who(place), part };
  }

  // ---- values

  #copy() {
    const versions = new Map([...this.#versions].map(([subject, known]) => [subject, new Map(known)]));
    return { links: new Map(this.#links), versions };
  }

  #take({ links, versions }) {
    this.#links = links;
    this.#versions = versions;
  }

  /** Return whether a body contains what the scenario says of it. */
  #body(wanted, body, subject, trial) {
    const { via: _, description, ...rest } = wanted;
    if (description !== undefined && !body.description) return false;
    const about = isObject(rest.value) && typeof rest.value.url === "string" ? rest.value.url : subject;
    return this.#object(rest, body, about, trial);
  }

  #object(wanted, found, subject, trial) {
    const isOfTransport = OFFERED.has(wanted.attribute) && OFFERED.has(found.attribute);
    return Object.entries(wanted).every(([key, one]) => {
      if (OFFERED.has(key) || (isOfTransport && (key === "attribute" || key === "value"))) return true;
      if (key === "id" && "type" in wanted && "to" in wanted) return Number.isInteger(found.id);
      if (!(key in found)) return false;
      if (key === "version" && Number.isInteger(one)) return this.#version(one, found.version, subject, trial);
      return this.#holds(one, found[key], subject, trial);
    });
  }

  #holds(wanted, found, subject, trial) {
    if (Array.isArray(wanted)) {
      const isOfChildren = (one) => typeof one === "string" && one.includes("/children/");
      if (!Array.isArray(found)) return false;
      const kept = wanted.some(isOfChildren) ? found : found.filter((one) => !isOfChildren(one));
      return wanted.length === kept.length && wanted.every((one, at) => this.#holds(one, kept[at], subject, trial));
    }
    if (isObject(wanted)) return isObject(found) && this.#object(wanted, found, subject, trial);
    if (typeof wanted === "string" && wanted.startsWith("hyperty-catalogue:")) {
      return typeof found === "string" && found.split("/").slice(3).join() === wanted.split("/").slice(3).join();
    }
    return wanted === found;
  }

  /** Versions of an object grow as those of the scenario do; what describes a link changes more often. */
  #version(wanted, found, subject, trial) {
    const known = trial.versions.get(subject) ?? new Map();
    if (known.has(wanted)) return known.get(wanted) === found;
    const isLike = ([one, seen]) =>
      subject.startsWith("comm:") ? seen - one === found - wanted : one < wanted === seen < found;
    if (![...known].every(isLike)) return false;
    trial.versions.set(subject, known.set(wanted, found));
    return true;
  }
}
