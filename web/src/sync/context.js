/** The means that the parts of a sync manager share. */

import { isBelow, runtimeOf, subscriptionManager } from "../address.js";
import { CODES, MAX_SUBSCRIPTIONS } from "../constants.js";
import { BadMessageError } from "../json.js";
import { Shares } from "../limits.js";
import { refuse, replyTo } from "../message.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("../json.js").JsonObject} JsonObject */

/**
 * The knowledge about direct links.
 * @typedef {object} Links
 * @property {(entity: string) => string | null} linkTo the live link by which an entity is reached
 * @property {(link: string, part: string, entity: string) => Promise<boolean>} speaksFor whether a
 *   part of the runtime at the other end of a link speaks for an entity
 * @property {(entity: string) => void} want sets a link up for an entity, if that is possible
 */

/** @type {Links} */
export const NO_LINKS = { linkTo: () => null, speaksFor: async () => false, want: () => {} };

/** Objects of all hyperties in Workers: of three paths each, they have half of those of a session. */
const CONFINED_OBJECTS = Math.floor(MAX_SUBSCRIPTIONS / 6);

/** An object at one of its ends, while that end keeps it. */
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

/** The means that the parts of a sync manager share. */
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
   * Have a node deliver what is sent to addresses, or no longer.
   *
   * @param {"subscribe" | "unsubscribe"} type
   * @param {string} domain
   * @param {string[]} resources
   */
  path(type, domain, resources) {
    return this.port.ask(type, subscriptionManager(domain), { resources, source: this.runtime });
  }

  /**
   * Take room for an object; a hyperty in a Worker leaves room for others.
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
 * Return a text of a body.
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
 * Return the hyperty for which a sync manager asks: its own, or one of its runtime.
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
