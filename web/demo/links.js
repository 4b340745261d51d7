/** Where each link is in its machine, and what its steps mean in plain words. */

const WORDS = {
  started: "A link to {peer} is being set up.",
  "object-returned": "Offer and answer go to {peer} by the node; addresses are tried.",
  established: "The link to {peer} is live: messages go by it.",
  closed: "The link to {peer} is lost: messages go by the node.",
  reestablished: "The link to {peer} is live again.",
  renegotiated: "The link to {peer} is mended: a new offer is made.",
  yielded: "Both ends had asked: {peer} goes first.",
  resumed: "The link that {peer} asked for has failed; this one goes on.",
  refused: "The link to {peer} was refused.",
  "establish-failed": "No link to {peer} came about: messages go by the node.",
};

/** A sentence about a step. */
export const sentence = (step, peer) => (WORDS[step.cause] ?? `The link to {peer}: ${step.new}.`).replace("{peer}", () => peer);

const STEPS = 60;

/** The links of this page: one entry for each runtime at the other end. */
export class Links {
  #links = new Map();

  /**
   * Note a step of the machine `p2p_connection`.
   * @returns the address of the runtime at the other end
   */
  take(step) {
    const [, remote] = step.key.split("|");
    const link = this.#links.get(remote) ?? { ends: new Map(), steps: [], number: 0 };
    this.#links.set(remote, link);
    link.ends.delete(step.key);
    link.ends.set(step.key, step.new);
    // Ends that are over would pile up.
    for (const [key, state] of link.ends) if (state === "failed" && link.ends.size > 1) link.ends.delete(key);
    link.steps.push({ ...step, number: ++link.number });
    if (link.steps.length > STEPS) link.steps.shift();
    return remote;
  }

  /** The state of the link to a runtime: of two ends that one which is live, or moved last. */
  state(remote) {
    const states = [...(this.#links.get(remote)?.ends.values() ?? [])];
    return states.includes("live") ? "live" : states.at(-1) ?? null;
  }

  /** The last steps of a link, each with its number. */
  steps(remote) {
    return this.#links.get(remote)?.steps ?? [];
  }
}

const SLOW = 450;

/** Shows a link on the drawing of its machine: a few steps a second, that eyes can follow. */
export class Player {
  #picture;
  #links;
  #onState;
  #remote = null;
  #shown = 0;
  #timer = 0;

  /** @param {(state: string) => void} onState is called for each state that is shown */
  constructor(picture, links, onState) {
    this.#picture = picture;
    this.#links = links;
    this.#onState = onState;
  }

  /** Show a link, with all that it has done, or what it has done since. */
  show(remote) {
    const steps = this.#links.steps(remote);
    const isOther = remote !== this.#remote;
    if (isOther) {
      this.#remote = remote;
      clearTimeout(this.#timer);
      this.#timer = 0;
      this.#paint(steps, null);
    } else if (!this.#timer) this.#next();
  }

  #next() {
    const steps = this.#links.steps(this.#remote);
    const step = steps.find((one) => one.number > this.#shown);
    this.#timer = step ? setTimeout(() => this.#next(), SLOW) : 0;
    if (step) this.#paint(steps.slice(0, steps.indexOf(step) + 1), step);
  }

  #paint(steps, just) {
    const edges = new Map();
    for (const { old, cause } of steps) {
      const id = `${old}|${cause}`;
      edges.set(id, { old, cause, count: (edges.get(id)?.count ?? 0) + 1 });
    }
    const before = new Map([...edges].map(([id, edge]) => [id, edge.count]));
    if (just) before.set(`${just.old}|${just.cause}`, 0);
    const state = just?.new ?? this.#links.state(this.#remote);
    this.#picture.clear();
    this.#picture.show({ states: state ? { [state]: 1 } : {}, edges }, before);
    this.#shown = steps.at(-1)?.number ?? 0;
    if (state) this.#onState(state);
  }
}
