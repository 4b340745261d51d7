/**
 * The table of direct links, one entry for each remote runtime, as a core without input or output:
 * `fsm/registry/resolve/links.py` explains it.
 *
 * An entity is bound to a link by its record only. Effects are objects with `do`.
 */

import { lastSegment } from "./address.js";
import * as constants from "./constants.js";
import { Entity } from "./machine.js";

/** @typedef {import("./machine.js").Step} Step */

/**
 * How a link is requested: of which runtime, of its handler stub, by which requester stub.
 * @typedef {{remote: string, handler: string, descriptor: string}} Plan
 */

/**
 * A status event of a link's stub; `link` is null where it is the stub itself.
 * @typedef {{stub: string, link: string | null, resource: string, value: string}} Seen
 */

/**
 * @typedef {Step | {do: "row", op: "add" | "upd" | "del", key: string, val: string} |
 *   {do: "peer-known", link: string, remote: string} | {do: "peer-gone", link: string} |
 *   {do: "set-path", url: string} | {do: "remove-path", url: string} |
 *   {do: "deploy", url: string, plan: Plan} | {do: "undeploy", url: string} |
 *   {do: "connect", stub: string, handler: string} |
 *   {do: "disconnect", stub: string, remote: string, link: string} |
 *   {do: "yield", stub: string, remote: string} | {do: "resume", stub: string, remote: string} |
 *   {do: "register-link", link: string, stub: string} | {do: "unregister-link", link: string} |
 *   {do: "link-up", remote: string, link: string} | {do: "link-down", remote: string} |
 *   {do: "link-gone", remote: string} | {do: "routes-changed"}} Effect
 */

/** The link to one remote runtime. */
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

  /**
   * @param {string} remote
   * @param {"requester" | "handler"} role
   * @param {string} stub
   * @param {string} link
   * @param {Entity} life
   * @param {Plan | null} [plan]
   */
  constructor(remote, role, stub, link, life, plan = null) {
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

  /** This end of a link, and the one beside it. @returns {LinkEntry[]} */
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
   * Return the end of the link for a stub that asks for the row: a handler, its newest.
   *
   * @param {string} stub
   * @returns {LinkEntry}
   */
  rowFor(stub) {
    return this.beside?.stub === stub ? this.beside : this;
  }

  /**
   * Return whether a handler is to wait for the row: our own request may become live.
   *
   * @param {string} stub
   */
  isHeld(stub) {
    return (this.yielding?.yieldsDue ?? 0) > 0 && stub === this.stub;
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  begun(now) {
    const step = this.life.step(this.role === "handler" ? "invited" : "planned");
    this.failsAt = now + this.life.patience;
    return [step, this.changed("add")];
  }

  /**
   * Take the peer's invitation; the new state says which of both links yields.
   *
   * @param {string} own
   * @param {string} link
   */
  contested(own, link) {
    const given = [
      ...(this.#isPending ? ["own request"] : []),
      ...(own < this.remote ? ["own runtime smaller"] : []),
      ...(this.isLive ? ["link live"] : []),
    ];
    return this.life.step("invited", `to ${link}`, given);
  }

  /** @returns {Effect[]} */
  wentLive() {
    const was = this.status;
    this.#routes();
    const { remote, link } = this;
    if (this.life.state !== "bound") return [this.life.step("live"), { do: "link-up", remote, link }];
    if (was === "live") return [];
    return [this.life.step("restored"), { do: "link-up", remote, link }];
  }

  /**
   * @param {LinkEntry} winner
   * @param {number} now
   * @returns {Effect[]}
   */
  yieldsTo(winner, now) {
    winner.life = this.life;
    winner.entities = this.entities;
    winner.failsAt = now + this.life.patience;
    if (this.deployment === "planned") return [];
    winner.beside = this;
    this.yieldsDue += 1;
    return this.deployment === "at work" ? [{ do: "yield", stub: this.stub, remote: this.remote }] : [];
  }

  /**
   * @param {string} value
   * @returns {Effect[]}
   */
  reportedWhileYielding(value) {
    const isFirst = this.deployment !== "at work";
    this.deployment = "at work";
    if (value === "yielding") this.yieldsDue -= 1;
    return isFirst ? [{ do: "yield", stub: this.stub, remote: this.remote }] : [];
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  resumed(now) {
    /** @type {Effect[]} */
    const steps = [this.life.step("resumed"), this.changed("upd")];
    this.failsAt = now + this.life.patience;
    if (this.deployment === "at work") {
      return [...steps, { do: "resume", stub: this.stub, remote: this.remote }];
    }
    this.yieldsDue = 0;
    return steps;
  }

  /**
   * @param {LinkEntry} old
   * @returns {Effect[]}
   */
  tookOver(old) {
    this.life = old.life;
    this.entities = old.entities;
    this.#routes();
    const { remote, link } = this;
    const step = this.life.step("replaced", `by ${link}`);
    return [step, { do: "link-down", remote }, { do: "link-up", remote, link }];
  }

  #routes() {
    this.status = "live";
    this.url = this.link;
    this.awaitsListeners = false;
    this.tries = 0;
    this.until = this.failsAt = Infinity;
  }

  /** @returns {Effect[]} */
  wasLost() {
    const was = this.status;
    this.status = "disconnected";
    this.awaitsListeners = false;
    if (this.life.state !== "bound" || was !== "live") return [];
    return [this.life.step("lost"), { do: "link-down", remote: this.remote }];
  }

  /** @param {string} status */
  setsUp(status) {
    this.status = status;
    this.until = Infinity;
    this.deployment = "at work";
  }

  /** @returns {Effect[]} */
  ended() {
    return [this.life.step("ended"), this.changed("del"), { do: "link-gone", remote: this.remote }];
  }

  /**
   * @param {"add" | "upd" | "del"} op
   * @returns {Effect}
   */
  changed(op) {
    const val = `${this.status} ${this.url ?? "None"} ${[...this.entities].join(" ")}`;
    return { do: "row", op, key: this.remote, val };
  }
}

/** The link to each remote runtime. */
export class LinkTable {
  #runtime;
  /** @type {Map<string, LinkEntry>} */
  #entries = new Map();
  /** @type {Map<string, string>} */
  #remoteOf = new Map();
  /** @type {Map<string, number>} */
  #cooling = new Map();
  /** Until when no link to a peer is taken. @type {Map<string, number>} */
  #barred = new Map();
  /** Set-ups in a row that have led to no link. @type {Map<string, number>} */
  #failed = new Map();
  #minted = 0;
  #isClosed = false;

  /** @param {string} runtime address of the own runtime */
  constructor(runtime) {
    this.#runtime = runtime;
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
   * Return the link that a stub gets when it asks for the row of a runtime.
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
   * Note where an entity lives by its record; it moves if it lived elsewhere.
   *
   * @param {string} entity
   * @param {string} remote the runtime that its record names
   * @returns {Effect[]}
   */
  bind(entity, remote) {
    const entry = this.#entries.get(remote);
    if (entry && this.#put(entity, entry)) return this.#rowChanged(entry);
    return this.#remoteOf.has(entity) && this.#remoteOf.get(entity) !== remote ? this.unbind(entity) : [];
  }

  /**
   * Forget where an entity lives: it may have come back elsewhere.
   *
   * @param {string} entity
   * @returns {Effect[]}
   */
  unbind(entity) {
    const entry = this.entryOf(entity);
    if (!entry) return [];
    this.#remoteOf.delete(entity);
    entry.entities.delete(entity);
    return this.#rowChanged(entry);
  }

  /**
   * @param {string} entity
   * @param {LinkEntry} entry
   */
  #put(entity, entry) {
    const isThere = this.#remoteOf.get(entity) === entry.remote;
    if (isThere || entry.entities.size >= constants.MAX_LINK_ENTITIES) return false;
    this.entryOf(entity)?.entities.delete(entity);
    this.#remoteOf.set(entity, entry.remote);
    entry.entities.add(entity);
    return true;
  }

  /**
   * @param {LinkEntry} entry
   * @returns {Effect[]}
   */
  #rowChanged(entry) {
    return [entry.changed("upd"), ...(entry.isLive ? [ROUTES] : [])];
  }

  // ---- requester side

  /**
   * Begin to set up a link, unless one exists or failed a moment ago.
   *
   * @param {Plan} plan
   * @param {number} now
   * @returns {Effect[]}
   */
  plan(plan, now) {
    const { remote } = plan;
    const isCooling = now < (this.#cooling.get(remote) ?? -Infinity) || this.#isBarred(remote, now);
    if (this.#isClosed || this.#entries.has(remote) || isCooling) return [];
    this.#minted += 1;
    const url = `${this.#runtime}/p2prequester/${this.#minted}`;
    const entry = new LinkEntry(remote, "requester", url, url, this.#life(remote), plan);
    this.#entries.set(remote, entry);
    return [{ do: "peer-known", link: url, remote }, ...entry.begun(now), { do: "set-path", url }];
  }

  /** @param {string} remote */
  #life(remote) {
    return new Entity("p2p_entry", `${this.#runtime}|${remote}`);
  }

  /**
   * Deploy the requester once its path is acknowledged.
   *
   * @param {string} url
   * @param {string | null} refusal
   * @param {number} now
   * @returns {Effect[]}
   */
  pathSet(url, refusal, now) {
    const entry = this.entryBy(url);
    if (!entry?.plan) return [{ do: "remove-path", url }];
    if (refusal !== null) return this.#remove(entry, now);
    entry.deployment = "ordered";
    return [{ do: "deploy", url, plan: entry.plan }];
  }

  /**
   * Take it that a stub is not deployed, or no longer.
   *
   * @param {string} url
   * @param {number} now
   * @returns {Effect[]}
   */
  gone(url, now) {
    /** @type {Effect[]} */
    const effects = [];
    for (const entry of this.entries) {
      if (entry.beside?.stub === url) effects.push(...this.#besideEnded(entry, entry.beside));
      if (entry.stub === url) effects.push(...this.#remove(entry, now));
    }
    return effects;
  }

  /**
   * Note that a link has ended for good, as its stub reports.
   *
   * @param {string} stub
   * @param {string} link
   * @param {number} now
   * @returns {Effect[]}
   */
  over(stub, link, now) {
    for (const entry of this.entries) {
      if (entry.stub === stub && entry.link === link) return this.#remove(entry, now);
      const { beside } = entry;
      if (beside && beside.stub === stub && beside.link === link) return this.#besideEnded(entry, beside);
    }
    return [];
  }

  /**
   * End all links to a peer that sends from addresses of others, and take none for a while.
   *
   * @param {string} link
   * @param {number} now
   * @returns {Effect[]}
   */
  forged(link, now) {
    const entry = this.entries.find((one) => one.ends.some((end) => end.link === link));
    if (!entry) return [];
    /** @type {Effect[]} */
    const effects = [];
    if (entry.beside) {
      const { stub, remote, link: its } = entry.beside;
      effects.push({ do: "disconnect", stub, remote, link: its }, ...this.#besideEnded(entry, entry.beside));
    }
    effects.push(...this.#givenUp(entry, now));
    for (const [one, until] of this.#barred) if (until <= now) this.#barred.delete(one);
    this.#barred.set(entry.remote, now + constants.ERROR_WINDOW);
    return effects;
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
   * Take a link's status event; an event of a link without an entry can only end that link.
   *
   * @param {Seen} seen
   * @param {number} now
   * @returns {Effect[]}
   */
  status({ stub, link: named, resource: remote, value }, now) {
    const link = named ?? stub;
    if (this.#isClosed) return [];
    const entry = this.#entries.get(remote);
    if (entry?.link === link) return this.#moved(entry, value, now);
    if (entry?.beside?.link === link) return this.#besideMoved(entry, entry.beside, value, now);
    if (value === "failed" || value === "disconnected") return this.#strayEnded(stub, link);
    const isRequester = stub === link;
    if (value === "created" && !isRequester && !this.#isBarred(remote, now)) {
      return this.#invited(new LinkEntry(remote, "handler", stub, link, this.#life(remote)), now);
    }
    const isStray = isRequester ? value === "created" : !entry;
    return isStray ? [{ do: "disconnect", stub, remote, link }] : [];
  }

  /**
   * @param {LinkEntry} fresh
   * @param {number} now
   * @returns {Effect[]}
   */
  #invited(fresh, now) {
    const there = this.#entries.get(fresh.remote);
    if (!there) return this.#begun(fresh, now);
    if (there.beside) return [...this.#olderEnded(there, there.beside, now), ...this.#invited(fresh, now)];
    const step = there.contested(this.#runtime, fresh.link);
    /** @type {Effect} */
    const known = { do: "peer-known", link: fresh.link, remote: fresh.remote };
    if (step.new === "removed") {
      fresh.entities = there.entities;
      return [step, ...this.#replaced(there), ...this.#begun(fresh, now)];
    }
    if (step.new === "yielding") {
      this.#entries.set(fresh.remote, fresh);
      const steps = [step, ...there.yieldsTo(fresh, now), fresh.changed("upd")];
      return [known, ...steps];
    }
    if (step.new === "bound") {
      there.beside = fresh;
      return [known, step];
    }
    return [step];
  }

  /**
   * @param {LinkEntry} fresh
   * @param {number} now
   * @returns {Effect[]}
   */
  #begun(fresh, now) {
    fresh.life = this.#life(fresh.remote);
    this.#entries.set(fresh.remote, fresh);
    return [{ do: "peer-known", link: fresh.link, remote: fresh.remote }, ...fresh.begun(now)];
  }

  /**
   * @param {LinkEntry} entry
   * @returns {Effect[]}
   */
  #replaced(entry) {
    return [entry.changed("del"), { do: "link-down", remote: entry.remote }, ROUTES, ...letGo(entry)];
  }

  // ---- two links at once

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} beside
   * @param {number} now
   * @returns {Effect[]}
   */
  #olderEnded(entry, beside, now) {
    return beside.role === "handler" ? this.#besideEnded(entry, beside) : this.#remove(entry, now);
  }

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} beside
   * @param {string} value
   * @param {number} now
   * @returns {Effect[]}
   */
  #besideMoved(entry, beside, value, now) {
    if (value === "failed") return this.#besideEnded(entry, beside);
    if (beside.role === "handler") return this.#invitationMoved(entry, beside, value);
    const orders = beside.reportedWhileYielding(value);
    if (value !== "live") return orders;
    // It was live before the order to yield: the other one may take its place.
    beside.yieldsDue = 0;
    entry.beside = null;
    beside.beside = entry;
    this.#entries.set(entry.remote, beside);
    return this.#moved(beside, value, now);
  }

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} fresh
   * @param {string} value
   * @returns {Effect[]}
   */
  #invitationMoved(entry, fresh, value) {
    const { stub, remote, link } = fresh;
    if (value === "disconnected") {
      return [{ do: "disconnect", stub, remote, link }, ...this.#besideEnded(entry, fresh)];
    }
    if (value === "live" && fresh.hasListeners) return this.#takenOver(entry, fresh);
    fresh.awaitsListeners = value === "live";
    return fresh.awaitsListeners ? [{ do: "register-link", link, stub }] : [];
  }

  /**
   * @param {LinkEntry} old
   * @param {LinkEntry} fresh
   * @returns {Effect[]}
   */
  #takenOver(old, fresh) {
    old.beside = null;
    this.#entries.set(old.remote, fresh);
    const steps = fresh.tookOver(old);
    return [...steps, fresh.changed("upd"), ROUTES, ...letGo(old)];
  }

  /**
   * @param {LinkEntry} entry
   * @param {LinkEntry} beside
   * @returns {Effect[]}
   */
  #besideEnded(entry, beside) {
    entry.beside = null;
    return this.#strayEnded(beside.stub, beside.link);
  }

  /**
   * @param {LinkEntry} winner
   * @param {LinkEntry} own
   * @param {number} now
   * @returns {Effect[]}
   */
  #resumed(winner, own, now) {
    winner.beside = null;
    this.#entries.set(own.remote, own);
    const { link } = winner;
    return [...own.resumed(now), { do: "peer-gone", link }, { do: "unregister-link", link }];
  }

  /**
   * @param {string} stub
   * @param {string} link
   * @returns {Effect[]}
   */
  #strayEnded(stub, link) {
    if (stub !== link) return [{ do: "peer-gone", link }, { do: "unregister-link", link }];
    return [{ do: "peer-gone", link }, { do: "undeploy", url: stub }, { do: "remove-path", url: stub }];
  }

  /**
   * @param {LinkEntry} entry
   * @param {string} value
   * @param {number} now
   * @returns {Effect[]}
   */
  #moved(entry, value, now) {
    switch (value) {
      case "live":
        if (entry.role === "handler" && !entry.hasListeners) {
          // It is live for us once its listeners stand, unless it is lost before.
          entry.setsUp("in-progress");
          entry.awaitsListeners = true;
          return [{ do: "register-link", link: entry.link, stub: entry.stub }];
        }
        return this.#live(entry);
      case "disconnected":
        return this.#disconnected(entry, now);
      case "failed":
        return this.#remove(entry, now);
      case "yielding":
        // It goes on: its report crossed the order.
        return entry.reportedWhileYielding(value);
      default:
        entry.setsUp(value);
        return [entry.changed("upd")];
    }
  }

  /**
   * Route to a handler's link once both listeners are there.
   *
   * @param {string} link
   * @param {string | null} refusal
   * @param {number} now
   * @returns {Effect[]}
   */
  registered(link, refusal, now) {
    const entry = this.entries.find((one) => one.ends.some((each) => each.link === link));
    const end = entry?.ends.find((each) => each.link === link);
    if (!entry || !end) return [{ do: "unregister-link", link }];
    if (refusal !== null) {
      const ended = end === entry ? this.#remove(entry, now) : this.#besideEnded(entry, end);
      return [{ do: "disconnect", stub: end.stub, remote: end.remote, link: end.link }, ...ended];
    }
    end.hasListeners = true;
    if (!end.awaitsListeners) return [];
    return end === entry ? this.#live(entry) : this.#takenOver(entry, end);
  }

  /**
   * @param {LinkEntry} entry
   * @returns {Effect[]}
   */
  #live(entry) {
    this.#failed.delete(entry.remote);
    const steps = entry.wentLive();
    const own = entry.yielding;
    /** @type {Effect[]} */
    const effects = [...steps, entry.changed("upd"), ROUTES];
    if (!own) return effects;
    // It has lost the simultaneous open for good.
    entry.beside = null;
    return [...effects, ...letGo(own)];
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   * @returns {Effect[]}
   */
  #disconnected(entry, now) {
    /** @type {Effect[]} */
    const effects = [...entry.wasLost(), entry.changed("upd"), ROUTES];
    if (entry.beside && !entry.yielding) {
      const fresh = entry.beside;
      entry.beside = null;
      return [...effects, ...this.#invited(fresh, now)];
    }
    if (entry.role === "handler") {
      entry.until = now + constants.SESSION_IDLE;
      return effects;
    }
    return [...effects, ...this.#reconnect(entry, now)];
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   * @returns {Effect[]}
   */
  #reconnect(entry, now) {
    if (!entry.plan || entry.tries >= constants.RECONNECT_TRIES) return this.#givenUp(entry, now);
    entry.until = now + constants.DIAL_TIMEOUT + constants.RECONNECT_BASE * 2 ** entry.tries;
    entry.tries += 1;
    return [{ do: "connect", stub: entry.stub, handler: entry.plan.handler }];
  }

  // ---- the end

  /** When `tick` is due. */
  get deadline() {
    return Math.min(...this.entries.map(({ until, failsAt }) => Math.min(until, failsAt)));
  }

  /**
   * Reconnect lost links, or give links up.
   *
   * @param {number} now
   * @returns {Effect[]}
   */
  tick(now) {
    /** @type {Effect[]} */
    const effects = [];
    for (const entry of this.entries) {
      if (entry.failsAt <= now) {
        if (entry.beside) effects.push(...this.#besideEnded(entry, entry.beside));
        effects.push(...this.#givenUp(entry, now));
      } else if (entry.until <= now) effects.push(...this.#reconnect(entry, now));
    }
    return effects;
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   * @returns {Effect[]}
   */
  #givenUp(entry, now) {
    const { stub, remote, link } = entry;
    return [{ do: "disconnect", stub, remote, link }, ...this.#remove(entry, now)];
  }

  /**
   * Remove all entries, and take no new ones.
   *
   * @returns {Effect[]}
   */
  close() {
    this.#isClosed = true;
    const { entries } = this;
    this.#entries.clear();
    this.#remoteOf.clear();
    const handled = entries.filter(({ role }) => role === "handler");
    return [
      ...entries.flatMap((entry) => entry.ended()),
      ROUTES,
      ...handled.map(({ link }) => /** @type {Effect} */ ({ do: "unregister-link", link })),
    ];
  }

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   * @returns {Effect[]}
   */
  #remove(entry, now) {
    if (entry.yielding) return this.#resumed(entry, entry.yielding, now);
    const { beside } = entry;
    entry.beside = null;
    const removed = this.#removed(entry, now);
    return beside ? [...removed, ...this.#begun(beside, now)] : removed;
  }

  /**
   * Begin the pause before the next set-up; it doubles while none has led to a link.
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

  /**
   * @param {LinkEntry} entry
   * @param {number} now
   * @returns {Effect[]}
   */
  #removed(entry, now) {
    this.#entries.delete(entry.remote);
    this.#cool(entry, now);
    for (const entity of entry.entities) this.#remoteOf.delete(entity);
    const { link, stub } = entry;
    /** @type {Effect[]} */
    const effects = [...entry.ended(), { do: "peer-gone", link }, ROUTES];
    if (entry.role === "handler") return [...effects, { do: "unregister-link", link }];
    return [...effects, { do: "undeploy", url: stub }, { do: "remove-path", url: stub }];
  }
}

/** @type {Effect} */
const ROUTES = { do: "routes-changed" };

/**
 * Have a link end for which another is there; a handler has ended its older one.
 *
 * @param {LinkEntry} entry
 * @returns {Effect[]}
 */
function letGo({ role, stub, remote, link }) {
  if (role === "handler") return [{ do: "unregister-link", link }];
  return [{ do: "disconnect", stub, remote, link }];
}

/**
 * Return how to link to a record's runtime; null: it does not take links.
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
