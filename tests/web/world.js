// A world of browser runtimes: the nodes of some domains, the network between them, data channels,
// a clock that the test turns, and everything that the runtimes record.

import { webcrypto } from "node:crypto";

import { schemeOf } from "../../web/src/address.js";
import { openRuntime } from "../../web/src/index.js";
import { instanceId } from "../../web/src/message.js";
// Loaded before the clock stands still.
import "../../web/src/more.js";
import { Trace } from "../../web/src/trace.js";
import { FakeClock, FakeSocket, reply, settle as takeTurns } from "./fake_node.js";

const OUTAGE = 0.1;
const GATHERING = 0.2;
const LATENCY = 0.1;
const IDLE_LIMIT = 600;

// ---- what happens beside the turns of the event loop

let computing = 0;
for (const name of ["digest", "sign", "verify", "importKey", "exportKey", "generateKey"]) {
  const act = webcrypto.subtle[name].bind(webcrypto.subtle);
  webcrypto.subtle[name] = async (...given) => {
    computing += 1;
    try {
      return await act(...given);
    } finally {
      computing -= 1;
    }
  };
}

/** Let everything happen that waits for nothing but its turn, or a signature. */
export async function settle() {
  do await takeTurns();
  while (computing);
}

// ---- what the runtimes record

/** The worlds whose runtimes record now. */
let observer = null;

const { record, message: messageOf } = Trace.prototype;
Trace.prototype.record = function keep(actor, fields) {
  observer?.see({ who: this.node, actor, ...fields });
  return record.call(this, actor, fields);
};
Trace.prototype.message = function keep(actor, op, message, more = {}) {
  observer?.see({ who: this.node, actor, k: "msg", op, message, mid: instanceId(message), ...more });
  return messageOf.call(this, actor, op, message, more);
};

// ---- data channels

/** Connections by the name in their session descriptions. */
const connections = new Map();
let minted = 0;

class FakeChannel {
  readyState = "connecting";
  bufferedAmount = 0;
  peer = null;

  send(sent) {
    const { peer } = this;
    if (this.readyState !== "open") throw new Error("the data channel is not open");
    const data = this.world.carried(sent, this.owner);
    if (data === null) return;
    const copy = typeof data === "string" ? data : Uint8Array.from(new Uint8Array(data.buffer ?? data)).buffer;
    queueMicrotask(() => peer.readyState === "open" && peer.onmessage?.({ data: copy }));
  }

  open() {
    this.readyState = "open";
    this.onopen?.();
  }

  close() {
    if (this.readyState === "closed") return;
    this.readyState = "closed";
    queueMicrotask(() => this.onclose?.());
    this.peer?.close();
  }
}

/** As much of `RTCPeerConnection` as a link needs; two of them find each other by their words. */
class FakePeerConnection {
  static generateCertificate = async () => ({ print: fingerprint((minted += 1)), owner: observer.opening });

  connectionState = "new";
  remote = null;
  local = null;

  constructor({ certificates: [{ print, owner }] }) {
    this.print = print;
    this.owner = owner;
    this.name = `c${(minted += 1)}`;
    this.world = observer;
    this.world.connections.push(this);
    connections.set(this.name, this);
  }

  createDataChannel() {
    this.channel = Object.assign(new FakeChannel(), { world: this.world, owner: this.owner });
    return this.channel;
  }

  #words(setup) {
    const lines = [`s=${this.name}`, "m=application 9 UDP/DTLS/SCTP webrtc-datachannel"];
    return ["v=0", ...lines, `a=fingerprint:sha-256 ${this.print}`, `a=setup:${setup}`, ""].join("\r\n");
  }

  createOffer = async () => ({ type: "offer", sdp: this.#words("actpass") });

  createAnswer = async () => ({ type: "answer", sdp: this.#words("active") });

  async setLocalDescription({ sdp }) {
    this.local = sdp;
    const { clock } = this.world;
    clock.at(clock.now() + GATHERING, () => {
      const candidate = `candidate:1 1 udp 1 192.0.2.${minted % 250} 9 typ host`;
      this.onicecandidate?.({ candidate: { toJSON: () => ({ candidate, sdpMid: "0", sdpMLineIndex: 0 }) } });
      this.onicecandidate?.({ candidate: null });
    });
  }

  async setRemoteDescription({ type, sdp }) {
    const peer = connections.get(/^s=(.*)$/m.exec(sdp)[1].trim());
    this.remote = peer;
    // The end that has asked hears the answer last.
    if (type === "answer") this.world.connect(this, peer);
  }

  /** Candidates of the peer. */
  tried = [];

  addIceCandidate = async (ice) => void this.tried.push(ice);

  close() {
    this.connectionState = "closed";
    this.channel?.close();
    connections.delete(this.name);
  }
}

function fingerprint(seed) {
  return Array.from({ length: 32 }, (_, at) => ((seed * 31 + at) % 256).toString(16).padStart(2, "0").toUpperCase()).join(":");
}

globalThis.RTCPeerConnection = FakePeerConnection;

// ---- nodes

/** Place of a runtime at the node of its domain. */
class Seat {
  frames = [];
  socket = null;
  waiting = [];
  isOpen = false;
  isGone = false;
  goneSince = Infinity;
  outUntil = 0;

  constructor(world, url, user) {
    const [, , domain] = url.split("/");
    const identity = { runtime: url, user, vouchedBy: user ? "domain" : "none" };
    Object.assign(this, { world, url, domain, identity, session: `domain://msg-node.${domain}/session` });
  }

  connect = () => {
    const socket = new FakeSocket(this);
    queueMicrotask(() => {
      const isOut = this.isGone || this.world.clock.now() < this.outUntil;
      if (isOut) return socket.onclose?.({ code: 1006, reason: "" });
      this.socket = socket;
      socket.isOpen = true;
      socket.onopen?.();
    });
    return socket;
  };

  heard(message, socket) {
    if (socket !== this.socket) return;
    const { to, from, type, body } = message;
    if (to !== this.session || !from.includes("/protostub/")) return void this.world.route(message, this);
    if (type === "response") return;
    this.#write(reply(message, { code: 200, value: { sessionToken: `token of ${this.url}`, identity: this.identity } }));
    if (body.method === "close") this.isOpen = false;
    if (body.method !== "open" && body.method !== "re-open") return;
    this.isOpen = true;
    for (const one of this.waiting.splice(0)) this.#write(one);
  }

  /** Bring a message, or keep it until the runtime is back. */
  bring(message) {
    if (this.isOpen) this.#write(message);
    else this.waiting.push(message);
  }

  #write(message) {
    const { socket } = this;
    queueMicrotask(() => socket.onmessage?.({ data: JSON.stringify(message) }));
  }

  cut() {
    this.outUntil = this.world.clock.now() + OUTAGE;
    this.isOpen = false;
    this.socket?.onclose?.({ code: 1006, reason: "cut" });
    this.socket = null;
  }

  vanish() {
    this.isGone = true;
    this.goneSince = this.world.clock.now();
    this.cut();
  }
}

/** A world; only one at a time is watched. */
export class World {
  clock = new FakeClock();
  /** What the runtimes have recorded, in order. */
  seen = [];
  seats = new Map();
  runtimes = new Map();
  /** Runtimes by the addresses that they own, and by the paths that they have subscribed. */
  owners = new Map();
  subscribed = new Map();
  records = new Map();
  /** What nodes refuse, by the address of the node. */
  denials = [];
  /** Addresses that are allocated next, by scheme and domain. */
  names = new Map();
  /** Answers of services behind nodes, and of peers outside: functions of the message, by its `to`. */
  services = new Map();
  /** Pairs of runtimes between which no channel opens. */
  silent = new Set();
  /** Channels that have opened, with the runtimes at their ends. */
  channels = [];
  /** All connections that runtimes have made. */
  connections = [];
  /** What a channel makes of what a runtime sends by it; null: it is lost. */
  carried = (data) => data;
  /** Are called each time that nothing is under way. */
  watchers = new Set();
  /** The runtime that is being opened. */
  opening = null;
  #allocated = 0;
  #reports = 0;

  constructor() {
    observer = this;
  }

  see(fact) {
    this.seen.push(fact);
  }

  // ---- runtimes

  /** Open a runtime and wait for it. */
  async open(url, { p2p = false, user = null, policy } = {}) {
    const [, , domain, name] = url.split("/");
    const seat = new Seat(this, url, user);
    this.seats.set(url, seat);
    this.opening = url;
    const options = { domain, name, node: `wss://${domain}/link`, p2p, policy, clock: this.clock, trace: true };
    const runtime = await this.until(openRuntime({ ...options, ...(p2p ? {} : { key: null }), connect: seat.connect }));
    this.runtimes.set(url, runtime);
    return runtime;
  }

  /** Wait for something that the runtimes do; the clock goes on meanwhile. */
  async until(promise) {
    let isOver = false;
    const end = () => (isOver = true);
    promise.then(end, end);
    for (let turn = 0; turn < 300 && !isOver; turn += 1) {
      await settle();
      if (!isOver) await this.turn(LATENCY);
    }
    if (!isOver) throw new Error("it does not come about in 30 seconds");
    return promise;
  }

  /** Wait until a condition holds; return whether it does within half a minute. */
  async waitFor(holds, seconds = 30) {
    for (let left = seconds; ; left -= LATENCY) {
      await settle();
      if (holds()) return true;
      if (left <= 0) return false;
      await this.turn(LATENCY);
    }
  }

  async close() {
    const closing = Promise.all([...this.runtimes.values()].map((one) => one.close()));
    await this.until(closing);
    connections.clear();
    observer = null;
  }

  /** Turn the clock. */
  turn(seconds) {
    return this.clock.turn(seconds, async () => {
      await settle();
      for (const look of this.watchers) look();
    });
  }

  // ---- data channels

  connect(dialler, answerer) {
    if (!answerer) return;
    const ends = [dialler.owner, answerer.owner].sort().join(" ");
    this.clock.at(this.clock.now() + GATHERING + LATENCY, () => {
      const [one, other] = [dialler.channel, answerer.channel];
      if (this.silent.has(ends) || one.readyState !== "connecting" || other.readyState !== "connecting") return;
      one.peer = other;
      other.peer = one;
      this.channels.push({ ends, channel: one });
      for (const channel of [one, other]) channel.open();
    });
  }

  /** Break the channels between two runtimes. */
  cutChannels(...pair) {
    for (const { ends, channel } of this.channels) if (ends === pair.sort().join(" ")) channel.close();
  }

  // ---- nodes

  route(message, seat) {
    const { to, from, type, body } = message;
    const refuse = (code, description) => type !== "response" && seat.bring(reply(message, { code, description }));
    const [, , host] = to.split("/");
    const denial = this.denials.find((one) => one.type === type && one.from === from && one.to === to);
    if (denial) return refuse(403, denial.why);
    const service = this.services.get(to);
    const answer = service ? service(message, seat) : this.#served(message, host, seat);
    if (answer) return void seat.bring(reply(message, answer));
    if (answer === null) return undefined;
    const seats = this.#receivers(to).filter((one) => one !== seat.url || schemeOf(to) === "hyperty");
    const isEvent = type !== "response" && to.endsWith("/changes") && type === "update";
    if (!seats.length && !isEvent) return refuse(404, "no session owns address");
    const { identity } = seat;
    for (const url of seats) this.seats.get(url).bring({ ...message, body: { ...body, identity } });
    return undefined;
  }

  /** Answer a request to a service of a node; undefined: it is none. */
  #served({ to, type, body }, host, seat) {
    if (!to.startsWith("domain://") || type === "response") return undefined;
    const domain = host.replace(/^[^.]+\./, "");
    if (to.endsWith("/address-allocation")) return this.#allocation(type, body, domain, seat);
    if (to.endsWith("/session")) return { code: 200 };
    if (to.endsWith("/sm")) return this.#subscription(type, body, seat);
    if (host.startsWith("registry.")) return this.#registry(type, body);
    return { code: 404, description: "no such service" };
  }

  #allocation(type, { scheme, value = {}, childrenResources = [], resource }, domain, seat) {
    if (type === "delete") {
      const freed = resource ? [...this.owners.keys()].filter((one) => schemeOf(one) === "connection") : childrenResources;
      if (freed.some((one) => (this.owners.get(one) ?? seat.url) !== seat.url)) {
        return { code: 403, description: "not the owner" };
      }
      for (const one of freed) this.owners.delete(one);
      return { code: 200 };
    }
    const { number = 1, allocated: claimed } = value;
    if (!claimed && !(number >= 1)) return { code: 400, description: "number must be >= 1" };
    const next = () => {
      const waiting = this.names.get(`${scheme} ${domain}`) ?? [];
      return waiting.shift() ?? `${scheme}://${domain}/own-${(this.#allocated += 1)}`;
    };
    const allocated = claimed ?? Array.from({ length: number }, next);
    for (const one of allocated) this.owners.set(one, seat.url);
    return { code: 200, value: { allocated } };
  }

  #subscription(type, { resources = [] }, seat) {
    for (const one of resources) {
      const there = this.subscribed.get(one) ?? new Set();
      if (type === "subscribe") this.subscribed.set(one, there.add(seat.url));
      else there.delete(seat.url);
    }
    return { code: 200 };
  }

  #registry(type, { value, resource = "", attribute, criteria }) {
    if (type === "create") this.records.set(value.url, { ...value });
    else if (type === "update" && this.records.has(resource)) {
      const record = this.records.get(resource);
      const { status } = record;
      Object.assign(record, attribute ? { [attribute]: value } : value);
      if (record.status !== status) this.#changed(resource, record.status);
    } else if (type === "read") return this.#found(resource, criteria);
    return { code: 200 };
  }

  #changed(url, value) {
    const to = `${url}/registration`;
    this.#reports += 1;
    const report = { id: this.#reports, type: "update", from: `domain://registry.${url.split("/")[2]}`, to };
    for (const one of this.subscribed.get(to) ?? []) {
      this.seats.get(one).bring({ ...report, body: { attribute: "status", value } });
    }
  }

  #found(resource, criteria) {
    const user = /^\/hyperty\/user\/(.*)$/s.exec(resource)?.[1];
    if (user) {
      const found = [...this.records.values()].filter((one) => one.user === user && criteria);
      const isLive = found.some(({ status }) => status === "live");
      if (found.length) return { code: isLive ? 200 : 408, value: found, description: isLive ? "OK" : "Temporarily Unavailable" };
    }
    const one = this.records.get(resource);
    return one ? { code: 200, value: one } : { code: 404, description: "Not Found" };
  }

  #receivers(to) {
    const scheme = schemeOf(to);
    if (scheme === "hyperty-runtime") return this.#there([to.split("/").slice(0, 4).join("/")]);
    if (scheme === "hyperty") return this.#there([this.owners.get(to) ?? this.owners.get(to.replace(/\/[^/]+$/, ""))]);
    return this.#there([...(this.subscribed.get(to) ?? [])]);
  }

  #there(urls) {
    return urls.filter((one) => this.seats.has(one));
  }

  /** Give up the sessions of runtimes that are gone for long. */
  expire() {
    const isOver = ({ goneSince }) => this.clock.now() - goneSince >= IDLE_LIMIT;
    for (const [url, seat] of this.seats) {
      if (!isOver(seat)) continue;
      for (const [address, owner] of this.owners) if (owner === url) this.owners.delete(address);
      for (const there of this.subscribed.values()) there.delete(url);
    }
  }
}
