/** The page's model of the node: the last snapshot, and the frames after it. */

/** Samples of rates that are kept: two minutes. */
export const SAMPLES = 240;

const SMOOTH = 4;
const EVENTS = 200;
const ROWS = 5000;

/** The plotted sums; each is a prefix of figures, or one figure. */
export const SERIES = {
  received: "received.", sent: "sent.", admitted: "admitted", refused: "refused.", dropped: "dropped.",
};

export class Model {
  constructor(about) {
    this.about = about;
    this.rows = new Map();
    this.nodes = new Map();
    this.machines = new Map();
    this.figures = new Map();
    this.events = [];
    this.slow = [];
    this.total = 0;
    this.at = 0;
    this.interval = 0.5;
    this.sums = [];
    this.rates = Object.fromEntries(Object.keys(SERIES).map((name) => [name, []]));
  }

  /** Take a frame; `whole` replaces everything. */
  take(name, content) {
    if (name === "whole") {
      this.rows.clear();
      this.nodes.clear();
      this.machines.clear();
      this.figures.clear();
      this.sums = [];
      this.interval = content.interval;
    }
    this.at = content.at;
    this.total = content.total;
    this.slow = content.slow;
    for (const row of content.rows) {
      if (this.rows.has(row[0]) || this.rows.size < ROWS) this.rows.set(row[0], asRow(row));
    }
    for (const runtime of content.gone ?? []) this.rows.delete(runtime);
    for (const [machine, heat] of Object.entries(content.machines)) this.#heat(machine, heat);
    for (const [figure, value] of Object.entries(content.figures)) this.figures.set(figure, value);
    this.#remember(content.events, name === "whole");
    this.#sample();
    for (const [node, report] of Object.entries(content.nodes ?? {})) this.#node(node, report);
  }

  /** Take the report of a node; its rates are those between its last two reports. */
  #node(name, report) {
    if (!report) {
      this.nodes.delete(name);
      return;
    }
    const before = this.nodes.get(name);
    const node = { ...report, name, counts: new Map(Object.entries(report.figures ?? {})), rates: report.figures && before?.rates };
    const passed = node.heard - (before?.heard ?? node.heard);
    const rates = (of) => Object.fromEntries(Object.entries(SERIES).map(([one, prefix]) => [one, of(one, prefix)]));
    if (name === this.about.node) node.rates = rates((one) => this.rate(one));
    else if (report.figures && passed > 0) {
      node.rates = rates((_, prefix) => Math.max(0, (this.sum(prefix, node.counts) - this.sum(prefix, before.counts)) / passed));
    }
    this.nodes.set(name, node);
  }

  #heat(machine, heat) {
    const edges = new Map(heat.edges.map(([old, cause, now, count]) => [`${old} ${cause} ${now}`, { old, cause, now, count }]));
    this.machines.set(machine, { states: heat.states, edges });
  }

  #remember(events, isWhole) {
    const last = isWhole ? 0 : this.events.at(-1)?.n ?? 0;
    if (isWhole) this.events = [];
    this.events.push(...events.filter((event) => event.n > last));
    this.events.splice(0, this.events.length - EVENTS);
  }

  /** Take a sample of each rate: the mean of the last `SMOOTH` frames. */
  #sample() {
    const sums = Object.fromEntries(Object.entries(SERIES).map(([name, prefix]) => [name, this.sum(prefix)]));
    this.sums.push({ at: this.at, ...sums });
    const first = this.sums[0];
    const passed = this.at - first.at;
    if (this.sums.length > SMOOTH) this.sums.shift();
    if (passed <= 0) return;
    for (const name of Object.keys(SERIES)) {
      this.rates[name].push(Math.max(0, (sums[name] - first[name]) / passed));
      if (this.rates[name].length > SAMPLES) this.rates[name].shift();
    }
  }

  /** The sum of figures, of this node or of another, whose names begin with a prefix; without a dot, one figure. */
  sum(prefix, figures = this.figures) {
    if (!prefix.endsWith(".")) return figures.get(prefix) ?? 0;
    let sum = 0;
    for (const [name, value] of figures) if (name.startsWith(prefix)) sum += value;
    return sum;
  }

  /** Figures likewise, by the rest of their names behind a prefix, the largest first; none that is 0. */
  parts(prefix, figures = this.figures) {
    return [...figures]
      .filter(([name, value]) => name.startsWith(prefix) && value)
      .map(([name, value]) => [name.slice(prefix.length), value])
      .sort((a, b) => b[1] - a[1]);
  }

  /** The other nodes that have reported to this one. */
  others() {
    return [...this.nodes.values()].filter((node) => node.name !== this.about.node && node.figures);
  }

  /** The present rate. */
  rate(name) {
    return this.rates[name].at(-1) ?? 0;
  }

  /** Entities of a machine that are somewhere, and those that are history. */
  population(machine) {
    const states = this.machines.get(machine.name)?.states ?? {};
    const over = new Set(machine.states.filter((state) => state.over).map((state) => state.name));
    let [here, gone] = [0, 0];
    for (const [state, number] of Object.entries(states)) {
      if (state === "[*]") continue;
      if (over.has(state)) gone += number;
      else here += number;
    }
    return { here, gone };
  }
}

function asRow([runtime, state, form, link, since, addresses, paths, moves]) {
  return { runtime, state, form, link, since, addresses, paths, moves };
}
