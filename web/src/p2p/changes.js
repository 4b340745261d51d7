/**
 * What lives at both ends of a direct link, as their registries tell each other (P2P-23..26), as two
 * cores without input or output: `fsm/registry/changes.py` explains them.
 */

import { CODES, EARLY_CHANGES, LINK_ENTITY_BYTES, MAX_LINK_ENTITIES, MAX_LIST, MAX_LIST_BYTES } from "../constants.js";
import { Entity } from "../machine.js";
import { refuse, replyTo } from "../message.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../machine.js").Step} Step */

/** A link to a runtime is live, or no more; `isOver`: it does not come back.
 * @typedef {{remote: string, link: string | null, isOver?: boolean}} LinkChange */

/** Addresses came to where a registry reports them, or left. @typedef {{isAdded: boolean, urls: string[]}} Change */

/**
 * @typedef {Step | {do: "answer", message: Message} |
 *   {do: "follow" | "unfollow", link: string} |
 *   {do: "listen" | "unlisten", remote: string} | {do: "ask", remote: string, number: number} |
 *   {do: "came" | "went", remote: string, urls: string[]}} Effect
 */

/** @param {string} runtime */
export const registryAt = (runtime) => `${runtime}/registry`;

/** @param {string} runtime */
export const changesAt = (runtime) => `${registryAt(runtime)}/changes`;

/** The registries that follow this one: one of each runtime, by a link that is live at both ends. */
export class Followers {
  #runtime;
  #listed;
  /** @type {Map<string, string>} */
  #links = new Map();
  /** @type {Map<string, {life: Entity, link: string, waiting: Message | null, until: number}>} */
  #all = new Map();

  /**
   * @param {string} runtime address of the own runtime
   * @param {() => string[]} listed what lives here
   */
  constructor(runtime, listed) {
    this.#runtime = runtime;
    this.#listed = listed;
  }

  /** Whether anybody hears of changes. */
  get isHeard() {
    return [...this.#all.values()].some(({ waiting }) => !waiting);
  }

  /** When `tick` is due. */
  get deadline() {
    return Math.min(...[...this.#all.values()].map(({ until }) => until));
  }

  /**
   * @param {LinkChange} change
   * @returns {Effect[]}
   */
  linkIs({ remote, link }) {
    if (link === null) this.#links.delete(remote);
    else this.#links.set(remote, link);
    return this.#all.get(remote)?.link === link ? this.#decided(remote) : this.#end(remote, "unsubscribe", "the link is gone");
  }

  /**
   * A registry asks to follow. One that does so already may have missed the answer.
   *
   * @param {Message} request
   * @param {string} remote
   * @param {string} link by which it has come
   * @param {number} now
   * @returns {Effect[]}
   */
  asked(request, remote, link, now) {
    if (this.#all.get(remote)?.waiting === null) return [this.#list(request)];
    const ended = this.#end(remote, "unsubscribe", "it asked again");
    const life = new Entity("object_subscription", `${registryAt(this.#runtime)}|${registryAt(remote)}`);
    const begun = life.step("request");
    this.#all.set(remote, { life, link, waiting: request, until: now + life.patience });
    return [...ended, begun, ...(this.#links.get(remote) === link ? this.#decided(remote) : [])];
  }

  /**
   * @param {Message} request
   * @param {string} remote
   * @returns {Effect[]}
   */
  left(request, remote) {
    return [...this.#end(remote, "unsubscribe"), { do: "answer", message: replyTo(request, CODES.OK) }];
  }

  /**
   * @param {number} now
   * @returns {Effect[]}
   */
  tick(now) {
    const late = [...this.#all].filter(([, { until }]) => until <= now);
    return late.flatMap(([remote]) =>
      this.#end(remote, "refuse", "the link did not become live in time", CODES.UNAVAILABLE));
  }

  /**
   * @param {string} remote
   * @returns {Effect[]}
   */
  #decided(remote) {
    const one = this.#all.get(remote);
    if (!one?.waiting) return [];
    const { waiting, life, link } = one;
    const listed = this.#listed();
    if (listed.length > MAX_LIST || listed.join("").length > MAX_LIST_BYTES) {
      return this.#end(remote, "refuse", "too much lives here to be listed", CODES.TOO_LARGE);
    }
    one.waiting = null;
    one.until = Infinity;
    return [life.step("accept"), { do: "follow", link }, this.#list(waiting)];
  }

  /**
   * @param {Message} request
   * @returns {Effect}
   */
  #list(request) {
    return { do: "answer", message: replyTo(request, CODES.OK, { value: this.#listed() }) };
  }

  /**
   * @param {string} remote
   * @param {string} trigger
   * @param {string} [why]
   * @param {number} [code]
   * @returns {Effect[]}
   */
  #end(remote, trigger, why = "", code = CODES.GONE) {
    const one = this.#all.get(remote);
    if (!one) return [];
    this.#all.delete(remote);
    const { waiting, life, link } = one;
    if (!waiting) return [{ do: "unfollow", link }, life.step(trigger, why)];
    return [life.step(trigger, why), { do: "answer", message: refuse(waiting, code, why) }];
  }
}

/** The registries that this one follows, and what they report. */
export class Followed {
  #runtime;
  /** Those whose link is live; `early`: changes before the list.
   * @type {Map<string, {life: Entity, link: string, number: number, early: Change[]}>} */
  #all = new Map();
  /** What was reported last, also by one whose link is lost. @type {Map<string, Set<string>>} */
  #known = new Map();
  #asks = 0;

  /** @param {string} runtime address of the own runtime */
  constructor(runtime) {
    this.#runtime = runtime;
  }

  /**
   * @param {LinkChange} change
   * @returns {Effect[]}
   */
  linkIs({ remote, link, isOver }) {
    if (isOver) this.#known.delete(remote);
    const ended = this.#end(remote, "the link is lost");
    if (link === null) return ended;
    const life = new Entity("observer_copy", `${registryAt(remote)}|${registryAt(this.#runtime)}`);
    const number = (this.#asks += 1);
    this.#all.set(remote, { life, link, number, early: [] });
    return [...ended, life.step("observe"), { do: "listen", remote }, { do: "ask", remote, number }];
  }

  /**
   * A registry has answered; without a list nothing that it reported before can be relied on.
   *
   * @param {string} remote
   * @param {number} number of the question
   * @param {string[] | null} urls
   * @param {string} [why]
   * @returns {Effect[]}
   */
  answered(remote, number, urls, why) {
    const one = this.#all.get(remote);
    if (one?.number !== number) return [];
    const former = this.#known.get(remote) ?? new Set();
    this.#known.delete(remote);
    if (!urls) return [...this.#end(remote, why), ...differences(remote, former, new Set())];
    const known = new Set(urls);
    for (const change of one.early.splice(0)) applied(change, known);
    this.#known.set(remote, known);
    return [one.life.step("snapshot"), ...differences(remote, former, known)];
  }

  /**
   * @param {string} remote
   * @param {string} link
   * @param {Change} change
   * @returns {Effect[]}
   */
  reported(remote, link, change) {
    const one = this.#all.get(remote);
    if (one?.link !== link) return [];
    const step = one.life.step("changed");
    if (one.life.state === "live") {
      const known = /** @type {Set<string>} */ (this.#known.get(remote));
      const former = new Set(known);
      applied(change, known);
      return [step, ...differences(remote, former, known)];
    }
    one.early.push(change);
    const size = one.early.reduce((sum, { urls }) => sum + urls.join("").length, 0);
    if (one.early.length <= EARLY_CHANGES && size <= LINK_ENTITY_BYTES) return [step];
    return [step, ...this.#end(remote, "it sends too many changes before its list")];
  }

  /**
   * @param {string} remote
   * @param {string} [why]
   * @returns {Effect[]}
   */
  #end(remote, why) {
    const one = this.#all.get(remote);
    this.#all.delete(remote);
    return one ? [one.life.step("given-up", why), { do: "unlisten", remote }] : [];
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

/**
 * @param {string} remote
 * @param {Set<string>} former
 * @param {Set<string>} known
 * @returns {Effect[]}
 */
function differences(remote, former, known) {
  return [
    { do: "went", remote, urls: [...former].filter((one) => !known.has(one)) },
    { do: "came", remote, urls: [...known].filter((one) => !former.has(one)) },
  ];
}
