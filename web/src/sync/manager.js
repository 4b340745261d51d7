/**
 * The sync manager of a runtime, which handles the requests of reporters and observers of data
 * objects (`actors/runtime/sync/manager.py`).
 */

import { CODES } from "../constants.js";
import { BadMessageError, textOf } from "../json.js";
import { isRequest, isResponse } from "../message.js";
import { ObservedObjects } from "./observed.js";
import { ReportedObjects } from "./reported.js";

/** @typedef {import("../message.js").Message} Message */

/** Sync manager at the address `<runtime>/sm`: dispatches requests about data objects. */
export class SyncManager {
  #context;
  #reported;
  #observed;

  /** @param {import("./context.js").SyncContext} context */
  constructor(context) {
    this.#context = context;
    this.#reported = new ReportedObjects(context);
    this.#observed = new ObservedObjects(context, (url) => this.#reported.reporterOf(url));
    context.registry.onForgotten(() => {
      this.#observed.renew();
      return this.#reported.renew();
    });
  }

  /** @param {Message} message */
  take(message) {
    try {
      if (isResponse(message)) this.#reported.answered(message);
      else this.#asked(message);
    } catch (error) {
      if (!(error instanceof BadMessageError)) throw error;
      if (isRequest(message)) this.#context.refuse(message, error.code, error.message);
    }
  }

  /**
   * Use direct links.
   *
   * @param {import("../routes.js").Links} links
   */
  useLinks(links) {
    this.#context.links = links;
    this.#context.bus.eventsBy = (object) => this.#observed.heardBy(object);
    links.childrenBy = (object) => this.#observed.linkOf(object);
    links.onChange = () => {
      this.#reported.linksChanged();
      this.#observed.linksChanged();
    };
  }

  /** @param {Message} message */
  #asked(message) {
    const { to, type } = message;
    if (to === this.#context.port.url) return this.#byComponent(message);
    const reported = this.#reported.ownerOf(to);
    if (reported) return this.#reported.asked(reported, message);
    const observed = this.#observed.observed(to);
    if (observed && type === "delete") this.#observed.deleted(observed, message);
    else if (observed && type === "update") this.#observed.changed(observed, message);
    else if (isRequest(message)) this.#context.refuse(message, CODES.NOT_FOUND, "no such object");
  }

  /** @param {Message} message */
  #byComponent(message) {
    const { type, body, from } = message;
    const isByObject = from === `${textOf(body.resource)}/subscription`;
    if (!this.#context.bus.isLocal(from) && !(isByObject && /^(un)?subscribe$/.test(type))) {
      const why = "a sync manager serves the components of its own runtime only";
      throw new BadMessageError(why, CODES.FORBIDDEN);
    }
    switch (type) {
      case "create":
        return this.#reported.create(message);
      case "update":
        return this.#reported.change(message);
      case "delete":
        return this.#reported.delete(message);
      case "subscribe":
        if (isByObject) return this.#observed.back(message);
        return this.#observed.observe(message);
      case "unsubscribe":
        if (!("observer" in body)) return this.#observed.leave(message);
        return isByObject ? this.#observed.expelled(message) : this.#reported.expel(message);
      default:
        throw new BadMessageError("a sync manager does not do this", CODES.NOT_FOUND);
    }
  }

  /**
   * Delete the objects that a removed component reports, and leave those that it observes.
   *
   * @param {string} component
   */
  async left(component) {
    await Promise.all([this.#reported.leave(component), this.#observed.leaveAll(component)]);
  }

  /** Delete all that is reported, leave all that is observed. */
  async close() {
    const busy = new Set([...this.#reported.reporters, ...this.#observed.observers]);
    await Promise.all([...busy].map((one) => this.left(one)));
  }

  /** End all objects without sending messages, after the time for leaving is over. */
  letGo() {
    this.#reported.letGo();
  }
}
