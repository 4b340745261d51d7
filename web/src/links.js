/**
 * The table of direct links, with one entry for each remote runtime; a state machine without I/O,
 * as described in `fsm/registry/resolve/links.py`.
 *
 * An entity (hyperty or object) is assigned to a link only if its registration record says so.
 */

import { lastSegment } from "./address.js";
import * as constants from "./constants.js";
import { Entity } from "./machine.js";

/**
 * The plan for a link: the remote runtime, its handler stub, and the requester stub to load.
 * @typedef {{remote: string, handler: string, descriptor: string}} Plan
 */

/**
 * A status event of a link's stub; `link` is null where it is the stub itself.
 * @typedef {{stub: string, link: string | null, resource: string, value: string}} Seen
 */

/**
 * The commands of the table, which its host executes.
 * @typedef {object} TablePort
 * @property {(step: import("./machine.js").Step) => void} step
 * @property {(row: {op: "add" | "upd" | "del", key: string, val: string}) => void} row
 * @property {(link: string, remote: string) => void} addPeer
 * @property {(link: string) => void} removePeer
 * @property {(url: string) => void} setPath `pathSet` follows
 * @property {(url: string) => void} removePath
 * @property {(url: string, plan: Plan) => void} deploy
 * @property {(url: string) => void} undeploy
 * @property {(stub: string, handler: string) => void} connect
 * @property {(stub: string, remote: string, link: string) => void} disconnect
 * @property {(stub: string, remote: string) => void} suspend has our own request yield
 * @property {(stub: string, remote: string) => void} resume
 * @property {(link: string, stub: string) => void} registerLink `registered` follows
 * @property {(link: string) => void} unregisterLink
 * @property {(remote: string, link: string) => void} linkUp
 * @property {(remote: string) => void} linkDown
 * @property {(remote: string) => void} linkGone
 * @property {() => void} forgetRoutes
 */

/** The entry of the table for one remote runtime: its link, state and entities. */
export class LinkEntry {
  status = "created";
  /** @type {string | null} */
  url = null;
  hasListeners = false;
  awaitsListeners = false;
  /** The entities known to live there. @type {Set<string>} */
  entities = new Set();
  /** Another link to the same runtime. @type {LinkEntry | null} */
  beside = null;
  /** @type {"planned" | "ordered" | "at work"} */
  deployment = "planned";
  yieldsDue = 0;
  tries = 0;
  until = Infinity;
  failsAt = Infinity;
  #port;

  /**
   * @param {TablePort} port
   * @param {string} remote
   * @param {"requester" | "handler"} role
   * @param {string} stub
   * @param {string} link
   * @param {Entity} life
   * @param {Plan | null} [plan]
   */
  constructor(port, remote, role, stub, link, life, plan = null) {
    this.#port = port;
    this.remote = remote;
    this.role = role;
    this.stub = stub;
    this.link = link;
    this.life = life;
    this.plan = plan;
  }

  /** Whether messages may go by the link. */
  get isLive() {
    return this.status === "live" && this.url !== null;
  }

  /** This entry, and that for a second link to the same runtime. @returns {LinkEntry[]} */
  get ends() {
    return this.beside ? [this, this.beside] : [this];
  }

  /** Our own request that waits until this link is live or has failed. @returns {LinkEntry | null} */
  get yielding() {
    return this.beside?.role === "requester" ? this.beside : null;
  }

  get #isPending() {
    return this.role === "requester" && ["created", "in-progress"].includes(this.status);
  }

  /**
   * Return the entry that a stub gets when it asks the registry about its link.
   *
   * @param {string} stub
   * @returns {LinkEntry}
   */
  rowFor(stub) {
    return this.beside?.stub === stub ? this.beside : this;
  }

  /**
   * Return whether a handler's question must wait, since our own request may become live.
   *
   * @param {string} stub
   */
  isHeld(stub) {
    return (this.yielding?.yieldsDue ?? 0) > 0 && stub === this.stub;
  }

  /**
   * @param {string} trigger
   * @param {string} [why]
   * @param {string[]} [given]
   */
  move(trigger, why, given) {
    const step = this.life.step(trigger, why, given);
    this.#port.step(step);
    return step.new;
  }

  /** @param {number} now */
  begin(now) {
    this.move(this.role === "handler" ? "invited" : "planned");
    this.failsAt = now + this.life.patience;
    this.change("add");
  }

  /**
   * Process the peer's invitation during our own request; the new state shows which link yields.
   *
   * @param {string} own
   * @param {string} link
   */
  contest(own, link) {
    const given = [
      ...(this.#isPending ? ["own request"] : []),
      ...(own < this.remote ? ["own runtime smaller"] : []),
      ...(this.isLive ? ["link live"] : []),
    ];
    return this.life.step("invited", `to ${link}`, given);
  }

  goLive() {
    const was = this.status;
    this.#route();
    const isBound = this.life.state === "bound";
    if (isBound && was === "live") return;
    this.move(isBound ? "restored" : "live");
    this.#port.linkUp(this.remote, this.link);
  }

  /**
   * @param {LinkEntry} winner
   * @param {number} now
   */
  yieldTo(winner, now) {
    winner.life = this.life;
    winner.entities = this.entities;
    winner.failsAt = now + this.life.patience;
    if (this.deployment === "planned") return;
    winner.beside = this;
    this.yieldsDue += 1;
    if (this.deployment === "at work") this.#port.suspend(this.stub, this.remote);
  }

  /** @param {string} value */
  reportWhileYielding(value) {
    const isFirst = this.deployment !== "at work";
    this.deployment = "at work";
    if (value === "yielding") this.yieldsDue -= 1;
    if (isFirst) this.#port.suspend(this.stub, this.remote);
  }

  /** @param {number} now */
  resume(now) {
    this.move("resumed");
    this.change("upd");
    this.failsAt = now + this.life.patience;
    if (this.deployment === "at work") this.#port.resume(this.stub, this.remote);
    else this.yieldsDue = 0;
  }

  /** @param {LinkEntry} old */
  takeOver(old) {
    this.life = old.life;
    this.entities = old.entities;
    this.#route();
    this.move("replaced", `by ${this.link}`);
    this.#port.linkDown(this.remote);
    this.#port.linkUp(this.remote, this.link);
  }

  #route() {
    this.status = "live";
    this.url = this.link;
    this.awaitsListeners = false;
    this.tries = 0;
    this.until = this.failsAt = Infinity;
  }

  lose() {
    const was = this.status;
    this.status = "disconnected";
    this.awaitsListeners = false;
    if (this.life.state !== "bound" || was !== "live") return;
    this.move("lost");
    this.#port.linkDown(this.remote);
  }

  /** @param {string} status */
  setUp(status) {
    this.status = status;
    this.until = Infinity;
    this.deployment = "at work";
  }

  end() {
    this.move("ended");
    this.change("del");
    this.#port.linkGone(this.remote);
  }

  /** @param {"add" | "upd" | "del"} op */
  change(op) {
    const val = `${this.status} ${this.url ?? "None"} ${[...this.entities].join(" ")}`;
    this.#port.row({ op, key: this.remote, val });
  }

  /** Order the stub to end the link. */
  disconnect() {
    this.#port.disconnect(this.stub, this.remote, this.link);
  }

  /** End a link that another one replaces; a handler has ended its older link itself. */
  letGo() {
    if (this.role === "handler") this.#port.unregisterLink(this.link);
    else this.disconnect();
  }
}

/** The table of the links to all remote runtimes. */
export class LinkTable {
  #runtime;
  #port;
  /** @type {Map<string, LinkEntry>} */
  #entries = new Map();
  /** @type {Map<string, string>} */
  #remoteOf = new Map();
  /** @type {Map<string, number>} */
  #cooling = new Map();
  /** Until when links of a peer are refused. @type {Map<string, number>} */
  #barred = new Map();
  /** Set-ups in a row that have led to no link. @type {Map<string, number>} */
  #failed = new Map();
  #minted = 0;
  #isClosed = false;

  /**
   * @param {string} runtime address of the own runtime
   * @param {TablePort} port
   */
  constructor(runtime, port) {
    this.#runtime = runtime;
    this.#port = port;
  }

  /** All entries. */
  get entries() {
    return [...this.#entries.values()];
  }

  /** @param {string} link */
  entryBy(link) {
    return this.entries.find((entry) => entry.link === link) ?? null;
  }

  /** @param {string} entity */
  #remote(entity) {
    return this.#remoteOf.get(entity) ?? entity;
  }

  /**
   * Return the entry that a stub gets when it asks for the link to a runtime.
   *
   * @param {string} whom address of the runtime, or of an entity at it
   * @param {string} stub address of the stub that asks
   */
  row(whom, stub) {
    return this.#entries.get(this.#remote(whom))?.rowFor(stub) ?? null;
  }

  /**
   * Return the live link to an entity, or to a runtime.
   *
   * @param {string} entity
   */
  liveLink(entity) {
    const entry = this.#entries.get(this.#remote(entity));
    return entry?.isLive ? entry.url : null;
  }

  // ---- entities

  /** @param {string} entity */
  entryOf(entity) {
    return this.#entries.get(this.#remoteOf.get(entity) ?? "") ?? null;
  }

  /**
   * Assign an entity to the runtime that its record names, also if it was assigned elsewhere.
   *
   * @param {string} entity
   * @param {string} remote the runtime that its record names
   */
  bind(entity, remote) {
    const entry = this.#entries.get(remote);
    const bound = this.#remoteOf.get(entity);
    if (entry && bound !== remote && entry.entities.size < constants.MAX_LINK_ENTITIES) {
      this.entryOf(entity)?.entities.delete(entity);
      this.#remoteOf.set(entity, remote);
      entry.entities.add(entity);
      this.#changeRow(entry);
    } else if (bound !== undefined && bound !== remote) this.unbind(entity);
  }

  /**
   * Remove the assignment of an entity to a runtime, as it may have moved.
   *
   * @param {string} entity
   */
  unbind(entity) {
    const entry = this.entryOf(entity);
    if (!entry) return;
    this.#remoteOf.delete(entity);
    entry.entities.delete(entity);
    this.#changeRow(entry);
  }

  /** @param {LinkEntry} entry */
  #changeRow(entry) {
    entry.change("upd");
    if (entry.isLive) this.#port.forgetRoutes();
  }

  // ---- requester side

  /**
   * Begin to set up a link, unless one exists or failed a moment ago.
   *
   * @param {Plan} plan
   * @param {number} now
   */
  plan(plan, now) {
    const { remote } = plan;
    const isCooling = now < (this.#cooling.get(remote) ?? -Infinity) || this.#isBarred(remote, now);
    if (this.#isClosed || this.#entries.has(remote) || isCooling) return false;
    this.#minted += 1;
    const url = `${this.#runtime}/p2prequester/${this.#minted}`;
    this.#begin(new LinkEntry(this.#port, remote, "requester", url, url, this.#life(remote), plan), now);
    this.#port.setPath(url);
    return true;
  }

  /** @param {string} remote */
  #life(remote) {
    return new Entity("p2p_entry", `${this.#runtime}|${remote}`);
  }

  /**
   * Deploy the requester when the node has answered the subscription for its address.
   *
   * @param {string} url
   * @param {string | null} refusal
   * @param {number} now
   */
  pathSet(url, refusal, now) {
    const entry = this.entryBy(url);
    if (!entry?.plan) return this.#port.removePath(url);
    if (refusal !== null) return this.#remove(entry, now);
    entry.deployment = "ordered";
    this.#port.deploy(url, entry.plan);
  }

  /**
   * Process that a stub could not be deployed, or has ended.
   *
   * @param {string} url
   * @param {number} now
   */
  gone(url, now) {
    for (const entry of this.entries) {
      if (entry.beside?.stub === url) this.#endBeside(entry, entry.beside);
      if (entry.stub === url) this.#remove(entry, now);
    }
  }

  /**
   * Process a stub's report that a link has ended for good.
   *
   * @param {string} stub
   * @param {string} link
   * @param {number} now
   */
  over(stub, link, now) {
    for (const entry of this.entries) {
      if (entry.stub === stub && entry.link === link) return this.#remove(entry, now);
      const { beside } = entry;
      if (beside && beside.stub === stub && beside.link === link) return this.#endBeside(entry, beside);
    }
  }

  /**
   * End all links to a peer that uses addresses of others as sender; refuse its links for a while.
   *
   * @param {string} link
   * @param {number} now
   */
  forged(link, now) {
    const entry = this.entries.find((one) => one.ends.some((end) => end.link === link));
    if (!entry) return;
    if (entry.beside) {
      entry.beside.disconnect();
      this.#endBeside(entry, entry.beside);
    }
    this.#giveUp(entry, now);
    for (const [one, until] of this.#barred) if (until <= now) this.#barred.delete(one);
    this.#barred.set(entry.remote, now + constants.ERROR_WINDOW);
  }

  /**
   * @param {string} remote
   * @param {number} now
   */
  #isBarred(remote, now) {
    return now < (this.#barred.get(remote) ?? -Infinity);
  }

  // ---- status events

  /**
   * Process the status event of a link; a link without an entry is ended.
   *
   * @param {Seen} seen
   * @param {number} now
   */
  status({ stub, link: named, resource: remote, value }, now) {
    const link = named ?? stub;
    if (this.#isClosed) return;
    const entry = this.#entries.get(remote);
    if (entry?.link === link) return this.#move(entry, value, now);
    if (entry?.beside?.link === link) return this.#moveBeside(entry, entry.beside, value, now);
    if (value === "failed" || value === "disconnected") return this.#endStray(stub, link);
    const isRequester = stub === link;
    if (value === "created" && !isRequester && !this.#isBarred(remote, now)) {
      return this.#invite(new LinkEntry(this.#port, remote, "handler", stub, link, this.#life(remote)), now);
    }
    const isStray = isRequester ? value === "created" : !entry;
    if (isStray) this.#port.disconnect(stub, remote, link);
  }

  /**
   * Accept the link that a peer has requested.
   *
   * @param {LinkEntry} fresh
   * @param {number} now
   * @returns {void}
   */
  #invite(fresh, now) {
    const { remote, link } = fresh;
    const present = this.#entries.get(remote);
    if (!present) return this.#begin(fresh, now);
    if (present.beside) {
      // The older of two ends.
      if (present.beside.role === "handler") this.#endBeside(present, present.beside);
      else this.#remove(present, now);
      return this.#invite(fresh, now);
    }
    const step = present.contest(this.#runtime, link);
    if (step.new === "yielding" || step.new === "bound") this.#port.addPeer(link, remote);
    this.#port.step(step);
    if (step.new === "removed") {
      fresh.entities = present.entities;
      present.change("del");
      this.#port.linkDown(remote);
      this.#port.forgetRoutes();
      present.letGo();
      this.#begin(fresh, now);
    } else if (step.new === "yielding") {
      this.#entries.set(remote, fresh);
      present.yieldTo(fresh, now);
      fresh.change("upd");
    } else if (step.new === "bound") present.beside = fresh;
  }

  /**
   * @param {LinkEntry} fresh
   * @param {number} now
   */
  #begin(fresh, now) {
    fresh.life = this.#life(fresh.remote);
    this.#entries.set(fresh.remote, fresh);
    this.#port.addPeer(fresh.link, fresh.remote);
    fresh.begin(now);
  }

  // ---- two links at once

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} beside
   * @param {string} value
   * @param {number} now
   */
  #moveBeside(entry, beside, value, now) {
    if (value === "failed") return this.#endBeside(entry, beside);
    if (beside.role === "handler") return this.#moveInvitation(entry, beside, value);
    beside.reportWhileYielding(value);
    if (value !== "live") return;
    // It was live before the order to yield: the other one may take its place.
    beside.yieldsDue = 0;
    entry.beside = null;
    beside.beside = entry;
    this.#entries.set(entry.remote, beside);
    this.#move(beside, value, now);
  }

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} fresh
   * @param {string} value
   */
  #moveInvitation(entry, fresh, value) {
    if (value === "disconnected") {
      fresh.disconnect();
      return this.#endBeside(entry, fresh);
    }
    if (value === "live" && fresh.hasListeners) return this.#takeOver(entry, fresh);
    fresh.awaitsListeners = value === "live";
    if (fresh.awaitsListeners) this.#port.registerLink(fresh.link, fresh.stub);
  }

  /**
   * @param {LinkEntry} old
   * @param {LinkEntry} fresh
   */
  #takeOver(old, fresh) {
    old.beside = null;
    this.#entries.set(old.remote, fresh);
    fresh.takeOver(old);
    fresh.change("upd");
    this.#port.forgetRoutes();
    old.letGo();
  }

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} beside
   */
  #endBeside(entry, beside) {
    entry.beside = null;
    this.#endStray(beside.stub, beside.link);
  }

  /**
   * @param {string} stub
   * @param {string} link
   */
  #endStray(stub, link) {
    this.#port.removePeer(link);
    this.#forget(stub, link);
  }

  /**
   * @param {string} stub
   * @param {string} link
   */
  #forget(stub, link) {
    if (stub !== link) return this.#port.unregisterLink(link);
    this.#port.undeploy(stub);
    this.#port.removePath(stub);
  }

  /**
   * @param {LinkEntry} entry
   * @param {string} value
   * @param {number} now
   */
  #move(entry, value, now) {
    switch (value) {
      case "live":
        if (entry.role !== "handler" || entry.hasListeners) return this.#goLive(entry);
        // It is live for us once its listeners stand, unless it is lost before.
        entry.setUp("in-progress");
        entry.awaitsListeners = true;
        return this.#port.registerLink(entry.link, entry.stub);
      case "disconnected":
        return this.#disconnected(entry, now);
      case "failed":
        return this.#remove(entry, now);
      case "yielding":
        // It goes on: its report crossed the order.
        return entry.reportWhileYielding(value);
      default:
        entry.setUp(value);
        entry.change("upd");
    }
  }

  /**
   * Use a handler's link as a route when both its listeners are registered.
   *
   * @param {string} link
   * @param {string | null} refusal
   * @param {number} now
   */
  registered(link, refusal, now) {
    const entry = this.entries.find((one) => one.ends.some((each) => each.link === link));
    const end = entry?.ends.find((each) => each.link === link);
    if (!entry || !end) return this.#port.unregisterLink(link);
    if (refusal !== null) {
      end.disconnect();
      return end === entry ? this.#remove(entry, now) : this.#endBeside(entry, end);
    }
    end.hasListeners = true;
    if (!end.awaitsListeners) return;
    if (end === entry) this.#goLive(entry);
    else this.#takeOver(entry, end);
  }

  /** @param {LinkEntry} entry */
  #goLive(entry) {
    this.#failed.delete(entry.remote);
    entry.goLive();
    const own = entry.yielding;
    this.#changeRow(entry);
    if (!own) return;
    // It has lost the simultaneous open for good.
    entry.beside = null;
    own.letGo();
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   */
  #disconnected(entry, now) {
    entry.lose();
    entry.change("upd");
    this.#port.forgetRoutes();
    if (entry.beside && !entry.yielding) {
      const fresh = entry.beside;
      entry.beside = null;
      this.#invite(fresh, now);
    } else if (entry.role === "handler") entry.until = now + constants.SESSION_IDLE;
    else this.#reconnect(entry, now);
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   */
  #reconnect(entry, now) {
    if (!entry.plan || entry.tries >= constants.RECONNECT_TRIES) return this.#giveUp(entry, now);
    entry.until = now + constants.DIAL_TIMEOUT + constants.RECONNECT_BASE * 2 ** entry.tries;
    entry.tries += 1;
    this.#port.connect(entry.stub, entry.plan.handler);
  }

  // ---- the end

  /** When `timeOver` is due. */
  get deadline() {
    return Math.min(...this.entries.map(({ until, failsAt }) => Math.min(until, failsAt)));
  }

  /**
   * Reconnect lost links, or end them, when their time is over.
   *
   * @param {number} now
   */
  timeOver(now) {
    for (const entry of this.entries) {
      if (entry.failsAt <= now) {
        if (entry.beside) this.#endBeside(entry, entry.beside);
        this.#giveUp(entry, now);
      } else if (entry.until <= now) this.#reconnect(entry, now);
    }
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   */
  #giveUp(entry, now) {
    entry.disconnect();
    this.#remove(entry, now);
  }

  /** Remove all entries, and take no new ones. */
  close() {
    this.#isClosed = true;
    const { entries } = this;
    this.#entries.clear();
    this.#remoteOf.clear();
    for (const entry of entries) entry.end();
    this.#port.forgetRoutes();
    for (const { role, link } of entries) if (role === "handler") this.#port.unregisterLink(link);
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   */
  #remove(entry, now) {
    const { link, stub, remote, yielding: own, beside } = entry;
    entry.beside = null;
    if (own) {
      this.#entries.set(remote, own);
      own.resume(now);
      return this.#endStray(stub, link);
    }
    this.#entries.delete(remote);
    this.#cool(entry, now);
    for (const entity of entry.entities) this.#remoteOf.delete(entity);
    entry.end();
    this.#port.removePeer(link);
    this.#port.forgetRoutes();
    this.#forget(stub, link);
    if (beside) this.#begin(beside, now);
  }

  /**
   * Begin the pause before the next set-up, which doubles after each failed one.
   *
   * @param {LinkEntry} entry
   * @param {number} now
   */
  #cool({ remote, role }, now) {
    for (const [one, until] of this.#cooling) {
      if (until + constants.SESSION_IDLE > now) continue;
      this.#cooling.delete(one);
      this.#failed.delete(one);
    }
    const failed = this.#failed.get(remote) ?? 0;
    if (role === "requester") this.#failed.set(remote, failed + 1);
    const pause = constants.RETRY_COOL_DOWN * 2 ** Math.min(failed, constants.RECONNECT_TRIES + 2);
    this.#cooling.set(remote, now + Math.min(pause, constants.SESSION_IDLE));
  }
}

/**
 * Return the plan for a link to the runtime in a record; null: the runtime accepts no links.
 *
 * @param {import("./json.js").JsonObject} record
 * @returns {Plan | null}
 */
export function planOf({ runtime, p2pHandler, p2pRequester }) {
  if (typeof runtime !== "string" || typeof p2pHandler !== "string" || typeof p2pRequester !== "string") {
    return null;
  }
  if (!p2pHandler.startsWith(`${runtime}/`) || lastSegment(p2pRequester) === "") return null;
  return { remote: runtime, handler: p2pHandler, descriptor: p2pRequester };
}
