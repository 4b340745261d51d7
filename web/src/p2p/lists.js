/**
 * Exchange of lists of hyperties and objects with the registries at the other ends of direct links
 * (`actors/runtime/registry/registry.py`). A list is a hint only: an address is assigned to a link
 * when its registration record says the same (T18).
 */

import { domainOf, schemeOf } from "../address.js";
import { Alarm } from "../clock.js";
import { CLAIM_BURST, CLAIM_RATE, CODES, DROPS, PACE_SLICE } from "../constants.js";
import { Host } from "../host.js";
import { BadMessageError } from "../json.js";
import { TokenBucket } from "../limits.js";
import { addresses, isEvent, isSuccess, reasonIn, refuse, viaOf } from "../message.js";
import { changesAt, Followed, Followers, registryAt } from "./changes.js";

/** @typedef {import("../message.js").Message} Message */
/** @typedef {import("./changes.js").LinkChange} LinkChange */

/** Driver of the exchange of lists: sends subscriptions, answers and reports of the registry. */
export class Lists {
  #tools;
  #bus;
  #links;
  #port;
  #followers;
  #followed;
  #alarm;
  /** Addresses that peers list, with their runtimes, whose records are still to be read.
   * @type {Map<string, [string, string]>} */
  #claims = new Map();
  #pace = new TokenBucket(CLAIM_RATE, CLAIM_BURST);

  /**
   * @param {import("../bus.js").Tools} tools
   * @param {import("../bus.js").MessageBus} bus
   * @param {import("../routes.js").Links} links
   * @param {{port: import("../bus.js").Port, listed: () => string[]}} registry
   */
  constructor(tools, bus, links, { port, listed }) {
    this.#tools = tools;
    this.#bus = bus;
    this.#links = links;
    this.#port = port;
    const { runtime, clock } = tools;
    /** @type {import("./changes.js").ListsPort} */
    const does = {
      step: (step) => tools.trace.step("registry", step),
      answer: (message) => port.post(message),
      follow: (link) => bus.follow(changesAt(runtime), link, port.url),
      unfollow: (link) => bus.unfollow(changesAt(runtime), link, port.url),
      listen: (remote) => bus.follow(changesAt(remote), port.url, port.url),
      unlisten: (remote) => bus.unfollow(changesAt(remote), port.url, port.url),
      ask: (remote, number) => void this.#ask(remote, number),
      listEntities: (...changed) => this.#list(...changed),
    };
    this.#followers = new Host(clock, does, (asked) => new Followers(runtime, asked, listed));
    this.#followed = new Host(clock, does, (asked) => new Followed(runtime, asked));
    this.#alarm = new Alarm(clock, () => this.#read());
  }

  /** @param {LinkChange} change */
  linkIs(change) {
    const { remote, isOver } = change;
    for (const [claim, [, its]] of this.#claims) if (isOver && its === remote) this.#claims.delete(claim);
    this.#followers.run((core) => core.linkIs(change));
    this.#followed.run((core) => core.linkIs(change));
  }

  /**
   * Report to followers that a hyperty or object was added to this runtime, or removed.
   *
   * @param {string} url
   * @param {"add" | "remove"} operation
   */
  changed(url, operation) {
    if (!this.#followers.core.isHeard) return;
    this.#port.publish("update", changesAt(this.#tools.runtime), { value: [url], operation, attributeType: "array" });
  }

  /**
   * Process a message of another runtime's registry, which must come by the link to that runtime
   * and be about addresses of that runtime.
   *
   * @param {Message} message
   */
  take(message) {
    const { from, to, type, body } = message;
    const link = viaOf(message).at(-1);
    const remote = this.#links.entries.find((one) => one.link === link && from === registryAt(one.remote))?.remote;
    const { runtime, counters } = this.#tools;
    if (isEvent(message)) {
      if (!link || !remote || to !== changesAt(remote)) return counters.drop(DROPS.FORGED_STATUS, "registry", message);
      const { operation } = body;
      try {
        if (operation !== "add" && operation !== "remove") throw new BadMessageError("no such operation");
        const urls = addresses(body.value, "value");
        return this.#followed.run((core) => core.reported(remote, link, { isAdded: operation === "add", urls }));
      } catch {
        return counters.drop(DROPS.MALFORMED, "registry", message);
      }
    }
    const isAsked = Array.isArray(body.resources) && body.resources.length === 1 && body.resources[0] === changesAt(runtime);
    if (!link || !remote) {
      this.#port.post(refuse(message, CODES.FORBIDDEN, "what lives here is told to the registry of a linked runtime only"));
    } else if (!isAsked) this.#port.post(refuse(message, CODES.NOT_FOUND, "nothing else can be followed here"));
    else if (type === "subscribe") this.#followers.run((core, now) => core.asked(message, remote, link, now));
    else this.#followers.run((core) => core.left(message, remote));
  }

  /**
   * @param {string} remote
   * @param {string[]} came
   * @param {string[]} gone
   */
  #list(remote, came, gone) {
    for (const entity of gone) {
      this.#claims.delete(`${remote} ${entity}`);
      this.#links.left(entity, remote);
    }
    for (const entity of came) this.#claimed(entity, remote);
    this.#read();
  }

  /**
   * @param {string} entity
   * @param {string} remote whose registry lists it
   */
  #claimed(entity, remote) {
    if (domainOf(entity) !== domainOf(remote) || schemeOf(entity) === "hyperty-runtime") return;
    if (this.#links.knows(entity, remote)) void this.#links.learn(entity, remote);
    else this.#claims.set(`${remote} ${entity}`, [entity, remote]);
  }

  /** Read the records of the next listed addresses, as fast as the limits permit. */
  #read() {
    const now = this.#tools.clock.now();
    for (const [claim, [entity, remote]] of this.#claims) {
      if (!this.#pace.trySpend(now)) break;
      this.#claims.delete(claim);
      void this.#links.learn(entity, remote);
    }
    this.#alarm.set(this.#claims.size ? now + Math.max(this.#pace.pause(now), PACE_SLICE) : Infinity);
  }

  /**
   * @param {string} remote
   * @param {number} number
   */
  async #ask(remote, number) {
    const answer = await this.#port.ask("subscribe", registryAt(remote), { resources: [changesAt(remote)] });
    /** @type {string[] | null} */
    let urls = null;
    let why = reasonIn(answer);
    try {
      if (isSuccess(answer)) urls = addresses(answer.body.value, "value");
    } catch (error) {
      why = /** @type {Error} */ (error).message;
    }
    this.#followed.run((core) => core.answered(remote, number, urls, why));
  }
}
