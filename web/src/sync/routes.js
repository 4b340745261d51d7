/** Choice between the node and a direct link for the changes of an object (`fsm/sync/routes.py`). */

/** The result of changing the route; unsure: no answer came.
 * @typedef {"done" | "refused" | "unsure"} Moving */

/** The route by which the changes of one observed object come to this runtime. */
export class ObserverRoute {
  /** The link by which changes come; null: the node. @type {string | null} */
  used = null;
  #isOpen = false;
  /** @type {string | null} */
  #link = null;
  /** @type {string | null} */
  #barred = null;
  /** @type {Map<string, boolean | null>} */
  #preferences = new Map();
  #isMoving = false;
  #isUnsure = false;
  #moveTo;

  /** @param {(link: string | null) => void} moveTo has the changes come by this link; null: by the
   *   node. The host then calls `moved`. */
  constructor(moveTo) {
    this.#moveTo = moveTo;
  }

  /** True if no observer excludes links. */
  get mayUseLinks() {
    return ![...this.#preferences.values()].includes(false);
  }

  /** An observer in whose name the route may be changed for all; undefined: there is none. */
  get anybody() {
    return [...this.#preferences.keys()][0];
  }

  /** @param {string} observer */
  isWantedBy(observer) {
    return this.#preferences.has(observer);
  }

  /**
   * @param {string} observer
   * @param {boolean | null} p2p by a link only, by the node only, or by any
   */
  prefer(observer, p2p) {
    this.#preferences.set(observer, p2p);
    this.#move();
  }

  /** @param {string} observer */
  left(observer) {
    this.#preferences.delete(observer);
    this.#move();
  }

  /**
   * Process that the first observer has subscribed.
   *
   * @param {string | null} link
   * @param {string | null} [barred] the link that failed before
   */
  opened(link, barred = null) {
    this.#isOpen = true;
    this.used = link;
    this.#link = link ?? barred;
    this.#barred = barred;
    this.#move();
  }

  /**
   * Process that another observer has subscribed; the reporter may use its route now.
   *
   * @param {string | null} link
   */
  asked(link) {
    this.#isUnsure ||= this.#isMoving || link !== this.used;
    this.#move();
  }

  /** @param {string | null} link the live link to the reporter's runtime */
  linkIs(link) {
    if (link !== this.#link) {
      this.#barred = null;
      this.#isUnsure ||= this.#isMoving;
    }
    this.#link = link;
    this.#move();
  }

  /**
   * @param {string | null} link
   * @param {Moving} how
   */
  moved(link, how) {
    this.#isMoving = false;
    if (how === "done") this.used = link;
    else if (link !== null) {
      this.#barred = link;
      this.#isUnsure ||= how === "unsure";
    }
    this.#move();
  }

  #move() {
    if (this.#isMoving || !this.#isOpen) return;
    const aim = this.mayUseLinks && this.#link !== this.#barred ? this.#link : null;
    if (aim === this.used && !this.#isUnsure) return;
    this.#isMoving = true;
    this.#isUnsure = false;
    this.#moveTo(aim);
  }
}

/**
 * Commands that begin or end to send the changes of an object by a link, too.
 * @typedef {{addLink: (url: string, link: string) => void, removeLink: (url: string, link: string) => void}} RoutesPort
 */

/** The links by which the changes of reported objects are sent to runtimes of observers. */
export class RuntimeRoutes {
  #port;
  /** By object, and then by runtime. @type {Map<string, Map<string, string>>} */
  #asked = new Map();
  /** @type {Map<string, Map<string, string>>} */
  #used = new Map();

  /** @param {RoutesPort} port */
  constructor(port) {
    this.#port = port;
  }

  /**
   * Store the route of a runtime's last subscription.
   *
   * @param {string} url
   * @param {string} runtime
   * @param {string | null} link
   */
  asked(url, runtime, link) {
    if (link === null) this.#asked.get(url)?.delete(runtime);
    else this.#asked.set(url, (this.#asked.get(url) ?? new Map()).set(runtime, link));
  }

  /**
   * Use the route of the last subscription for a runtime that has an active observer.
   *
   * @param {string} url
   * @param {string} runtime
   */
  counts(url, runtime) {
    const links = this.#used.get(url) ?? new Map();
    this.#used.set(url, links);
    const wanted = this.#asked.get(url)?.get(runtime);
    const used = links.get(runtime);
    links.delete(runtime);
    if (wanted !== undefined) links.set(runtime, wanted);
    if (used !== wanted) {
      if (used !== undefined) this.#port.removeLink(url, used);
      if (wanted !== undefined) this.#port.addLink(url, wanted);
    }
    this.#tidy(url);
  }

  /**
   * Return the runtimes that get the changes of an object by a link.
   *
   * @param {string} url
   */
  direct(url) {
    return [...(this.#used.get(url)?.keys() ?? [])];
  }

  /** @param {string} url */
  isUsed(url) {
    return this.#asked.has(url) || this.#used.has(url);
  }

  /**
   * Remove the routes of runtimes that have no observers of an object any more.
   *
   * @param {string} url
   * @param {string[]} active runtimes with an active observer
   * @param {string[]} [asking] runtimes with a subscription that waits for a decision
   */
  left(url, active, asking = []) {
    const asked = this.#asked.get(url) ?? new Map();
    const used = this.#used.get(url) ?? new Map();
    for (const one of [...asked.keys()]) {
      if (!active.includes(one) && !asking.includes(one)) asked.delete(one);
    }
    for (const [one, link] of [...used]) {
      if (active.includes(one)) continue;
      used.delete(one);
      this.#port.removeLink(url, link);
    }
    this.#tidy(url);
  }

  /**
   * Process that a link leads to a runtime now; null: no link.
   *
   * @param {string} runtime
   * @param {string | null} link
   */
  linkIs(runtime, link) {
    for (const url of [...new Set([...this.#asked.keys(), ...this.#used.keys()])].sort()) {
      const asked = this.#asked.get(url);
      const used = this.#used.get(url)?.get(runtime);
      if (asked?.has(runtime) && asked.get(runtime) !== link) asked.delete(runtime);
      if (used !== undefined && used !== link) {
        this.#used.get(url)?.delete(runtime);
        this.#port.removeLink(url, used);
      }
      this.#tidy(url);
    }
  }

  /** @param {string} url */
  #tidy(url) {
    for (const table of [this.#asked, this.#used]) if (!table.get(url)?.size) table.delete(url);
  }
}
