/** Data and functions that the components of a sync manager share. */

import { isBelow, runtimeOf, subscriptionManager } from "../address.js";
import { CODES, MAX_SUBSCRIPTIONS } from "../constants.js";
import { BadMessageError } from "../json.js";
import { Shares } from "../limits.js";
import { refuse, replyTo } from "../message.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../json.js").JsonObject} JsonObject */

/**
 * The interface to the direct links of the runtime.
 * @typedef {object} Links
 * @property {(entity: string) => string | null} linkTo the live link by which an entity is reached
 * @property {(link: string, part: string, entity: string) => Promise<boolean>} speaksFor whether a
 *   part of the runtime at the other end of a link speaks for an entity
 * @property {(entity: string) => void} want sets a link up for an entity, if that is possible
 */

/** @type {Links} */
export const NO_LINKS = { linkTo: () => null, speaksFor: async () => false, want: () => {} };

/** Maximum objects of all hyperties in Workers: with three subscriptions each, half of a session's. */
const CONFINED_OBJECTS = Math.floor(MAX_SUBSCRIPTIONS / 6);

/** Base of the data that a sync manager keeps about a reported or observed object. */
export class Held {
  gone = () => {};

  /**
   * @param {string} url
   * @param {() => void} leave gives its room back
   */
  constructor(url, leave) {
    this.url = url;
    this.leave = leave;
    /** Resolves once the object is removed here. @type {Promise<void>} */
    this.end = new Promise((resolve) => (this.gone = resolve));
  }
}

/** Shared context of the components of a sync manager: bus, registry, links and requests. */
export class SyncContext {
  #room = new Shares(CONFINED_OBJECTS);

  /** @type {Links} */
  links = NO_LINKS;

  /**
   * @param {import("../bus.js").Tools} tools
   * @param {import("../bus.js").MessageBus} bus
   * @param {import("../registry.js").Registry} registry
   * @param {import("../bus.js").Port} port
   * @param {import("../bus.js").Mailbox} mailbox receives what is sent to objects
   */
  constructor(tools, bus, registry, port, mailbox) {
    this.tools = tools;
    this.bus = bus;
    this.registry = registry;
    this.port = port;
    this.mailbox = mailbox;
    this.runtime = tools.runtime;
    this.domain = tools.domain;
    this.trace = tools.trace;
  }

  get now() {
    return this.tools.clock.now();
  }

  /**
   * @param {Message} request
   * @param {number} code
   * @param {JsonObject} [body]
   */
  answer(request, code, body) {
    this.port.post(replyTo(request, code, body));
  }

  /**
   * @param {Message} request
   * @param {number} code
   * @param {string} why
   */
  refuse(request, code, why) {
    this.port.post(refuse(request, code, why));
  }

  /**
   * Subscribe or unsubscribe addresses at a node, which then delivers messages to them.
   *
   * @param {"subscribe" | "unsubscribe"} type
   * @param {string} domain
   * @param {string[]} resources
   */
  path(type, domain, resources) {
    return this.port.ask(type, subscriptionManager(domain), { resources, source: this.runtime });
  }

  /**
   * Count an object of a component; refuse it if a hyperty in a Worker has too many.
   *
   * @param {string} component that reports it, or is the first to observe it
   * @returns {() => void} gives the room back
   */
  roomFor(component) {
    const hyperty = runtimeOf(component);
    if (!this.tools.confined.has(hyperty)) return () => {};
    if (!this.#room.enter(hyperty)) {
      throw new BadMessageError("a hyperty in a Worker has no more data objects", CODES.TOO_LARGE);
    }
    return () => this.#room.leave(hyperty);
  }

  /** @param {string} address */
  listen(address) {
    this.bus.listen(address, this.mailbox, this.port.url);
  }

  /** @param {string} address */
  unlisten(address) {
    this.bus.unlisten(address, this.mailbox, this.port.url);
  }

  /**
   * @param {string} address
   * @param {string} component
   */
  follow(address, component) {
    this.bus.follow(address, component, this.port.url);
  }

  /**
   * @param {string} address
   * @param {string} component
   */
  unfollow(address, component) {
    this.bus.unfollow(address, component, this.port.url);
  }
}

/**
 * Return a text field of a body.
 *
 * @param {JsonObject} body
 * @param {string} name
 */
export function textIn(body, name) {
  const text = body[name];
  if (typeof text !== "string" || !text) throw new BadMessageError(`${name} is missing or no text`);
  return text;
}

/**
 * Return the observer that a request names, if the sender of the request may act for it.
 *
 * @param {Message} request
 */
export function observerOf({ from, body }) {
  const observer = textIn(body, "source");
  const isManager = /^hyperty-runtime:\/\/[^/]+\/[^/]+\/sm$/.test(from);
  const isPart = observer.startsWith("hyperty-runtime:");
  const runtime = from.slice(0, -"/sm".length);
  if (observer === from || (isManager && (!isPart || isBelow(observer, runtime)))) return observer;
  throw new BadMessageError(`${from} does not speak for ${observer}`, CODES.FORBIDDEN);
}
