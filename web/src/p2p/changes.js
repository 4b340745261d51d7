/**
 * Exchange of lists of hyperties and objects between the registries at both ends of a direct link
 * (P2P-23..26), as two state machines without I/O; see `fsm/registry/changes.py`.
 */

import { CODES, EARLY_CHANGES, LINK_ENTITY_BYTES, MAX_LINK_ENTITIES, MAX_LIST, MAX_LIST_BYTES } from "../constants.js";
import { Entity } from "../machine.js";
import { refuse, replyTo } from "../message.js";

/** @typedef {import("../message.js").Message} Message */

/** The event that a link to a runtime became live or was lost; `isOver`: lost for good.
 * @typedef {{remote: string, link: string | null, isOver?: boolean}} LinkChange */

/** Addresses that a registry added to its list, or removed. @typedef {{isAdded: boolean, urls: string[]}} Change */

/**
 * The commands of both cores.
 * @typedef {object} ListsPort
 * @property {(step: import("../machine.js").Step) => void} step
 * @property {(message: Message) => void} answer
 * @property {(link: string) => void} follow sends changes by a link
 * @property {(link: string) => void} unfollow
 * @property {(remote: string) => void} listen hears changes at a runtime
 * @property {(remote: string) => void} unlisten
 * @property {(remote: string, number: number) => void} ask `answered` follows
 * @property {(remote: string, came: string[], gone: string[]) => void} listEntities
 */

/** @param {string} runtime */
export const registryAt = (runtime) => `${runtime}/registry`;

/** @param {string} runtime */
export const changesAt = (runtime) => `${registryAt(runtime)}/changes`;

/** The remote registries that have subscribed to the list of this runtime, each by a live link. */
export class Followers {
  #runtime;
  #port;
  #listed;
  /** @type {Map<string, string>} */
  #links = new Map();
  /** @type {Map<string, {life: Entity, link: string, waiting: Message | null, until: number}>} */
  #all = new Map();

  /**
   * @param {string} runtime address of the own runtime
   * @param {ListsPort} port
   * @param {() => string[]} listed what lives here
   */
  constructor(runtime, port, listed) {
    this.#runtime = runtime;
    this.#port = port;
    this.#listed = listed;
  }

  /** Whether anybody hears of changes. */
  get isHeard() {
    return [...this.#all.values()].some(({ waiting }) => !waiting);
  }

  /** When `timeOver` is due. */
  get deadline() {
    return Math.min(...[...this.#all.values()].map(({ until }) => until));
  }

  /** @param {LinkChange} change */
  linkIs({ remote, link }) {
    if (link === null) this.#links.delete(remote);
    else this.#links.set(remote, link);
    if (this.#all.get(remote)?.link === link) this.#decide(remote);
    else this.#end(remote, "unsubscribe", "the link is gone");
  }

  /**
   * Process the subscription of a remote registry, which may be repeated if it missed the answer.
   *
   * @param {Message} request
   * @param {string} remote
   * @param {string} link by which it has come
   * @param {number} now
   */
  asked(request, remote, link, now) {
    if (this.#all.get(remote)?.waiting === null) return this.#list(request);
    this.#end(remote, "unsubscribe", "it asked again");
    const life = new Entity("object_subscription", `${registryAt(this.#runtime)}|${registryAt(remote)}`);
    this.#port.step(life.step("request"));
    this.#all.set(remote, { life, link, waiting: request, until: now + life.patience });
    if (this.#links.get(remote) === link) this.#decide(remote);
  }

  /**
   * @param {Message} request
   * @param {string} remote
   */
  left(request, remote) {
    this.#end(remote, "unsubscribe");
    this.#port.answer(replyTo(request, CODES.OK));
  }

  /** @param {number} now */
  timeOver(now) {
    for (const [remote, { until }] of [...this.#all]) {
      if (until <= now) this.#end(remote, "refuse", "the link did not become live in time", CODES.UNAVAILABLE);
    }
  }

  /** @param {string} remote */
  #decide(remote) {
    const follower = this.#all.get(remote);
    if (!follower?.waiting) return;
    const { waiting, life, link } = follower;
    const listed = this.#listed();
    if (listed.length > MAX_LIST || listed.join("").length > MAX_LIST_BYTES) {
      return this.#end(remote, "refuse", "too much lives here to be listed", CODES.TOO_LARGE);
    }
    follower.waiting = null;
    follower.until = Infinity;
    this.#port.step(life.step("accept"));
    this.#port.follow(link);
    this.#list(waiting);
  }

  /** @param {Message} request */
  #list(request) {
    this.#port.answer(replyTo(request, CODES.OK, { value: this.#listed() }));
  }

  /**
   * @param {string} remote
   * @param {string} trigger
   * @param {string} [why]
   * @param {number} [code]
   */
  #end(remote, trigger, why = "", code = CODES.GONE) {
    const follower = this.#all.get(remote);
    if (!follower) return;
    this.#all.delete(remote);
    const { waiting, life, link } = follower;
    if (!waiting) this.#port.unfollow(link);
    this.#port.step(life.step(trigger, why));
    if (waiting) this.#port.answer(refuse(waiting, code, why));
  }
}

/** The remote registries to whose lists this runtime has subscribed, and their reported addresses. */
export class Followed {
  #runtime;
  #port;
  /** Registries whose link is live; `early`: changes before the list.
   * @type {Map<string, {life: Entity, link: string, number: number, early: Change[]}>} */
  #all = new Map();
  /** The last reported addresses of each registry, also if its link is lost. @type {Map<string, Set<string>>} */
  #known = new Map();
  #asks = 0;

  /**
   * @param {string} runtime address of the own runtime
   * @param {ListsPort} port
   */
  constructor(runtime, port) {
    this.#runtime = runtime;
    this.#port = port;
  }

  /** @param {LinkChange} change */
  linkIs({ remote, link, isOver }) {
    if (isOver) this.#known.delete(remote);
    this.#end(remote, "the link is lost");
    if (link === null) return;
    const life = new Entity("observer_copy", `${registryAt(remote)}|${registryAt(this.#runtime)}`);
    const number = (this.#asks += 1);
    this.#all.set(remote, { life, link, number, early: [] });
    this.#port.step(life.step("observe"));
    this.#port.listen(remote);
    this.#port.ask(remote, number);
  }

  /**
   * Process a remote registry's answer; without a list, discard its earlier reports.
   *
   * @param {string} remote
   * @param {number} number of the question
   * @param {string[] | null} urls
   * @param {string} [why]
   */
  answered(remote, number, urls, why) {
    const list = this.#all.get(remote);
    if (list?.number !== number) return;
    const former = this.#known.get(remote) ?? new Set();
    this.#known.delete(remote);
    const known = new Set(urls);
    if (!urls) this.#end(remote, why);
    else {
      for (const change of list.early.splice(0)) applied(change, known);
      this.#known.set(remote, known);
      this.#port.step(list.life.step("snapshot"));
    }
    this.#compare(remote, former, known);
  }

  /**
   * @param {string} remote
   * @param {string} link
   * @param {Change} change
   */
  reported(remote, link, change) {
    const list = this.#all.get(remote);
    if (list?.link !== link) return;
    this.#port.step(list.life.step("changed"));
    const known = this.#known.get(remote);
    if (list.life.state === "live" && known) {
      const former = new Set(known);
      applied(change, known);
      return this.#compare(remote, former, known);
    }
    list.early.push(change);
    const size = list.early.reduce((sum, { urls }) => sum + urls.join("").length, 0);
    if (list.early.length <= EARLY_CHANGES && size <= LINK_ENTITY_BYTES) return;
    this.#end(remote, "it sends too many changes before its list");
  }

  /**
   * @param {string} remote
   * @param {string} [why]
   */
  #end(remote, why) {
    const list = this.#all.get(remote);
    this.#all.delete(remote);
    if (!list) return;
    this.#port.step(list.life.step("given-up", why));
    this.#port.unlisten(remote);
  }

  /**
   * @param {string} remote
   * @param {Set<string>} former
   * @param {Set<string>} known
   */
  #compare(remote, former, known) {
    const came = [...known].filter((one) => !former.has(one));
    const gone = [...former].filter((one) => !known.has(one));
    if (came.length || gone.length) this.#port.listEntities(remote, came, gone);
  }
}

/**
 * @param {Change} change
 * @param {Set<string>} known
 */
function applied({ isAdded, urls }, known) {
  if (!isAdded) {
    for (const url of urls) known.delete(url);
    return;
  }
  let left = LINK_ENTITY_BYTES - [...known].join("").length;
  for (const url of urls) {
    left -= url.length;
    if (known.size >= MAX_LINK_ENTITIES || left < 0) return;
    known.add(url);
  }
}
