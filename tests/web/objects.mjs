// Replays golden data on the browser runtime's cores; what differs is written to stdout.

import { readFileSync } from "node:fs";

import { BadMessageError, sorted } from "../../web/src/json.js";
import { instanceId } from "../../web/src/message.js";
import { LinkEnd } from "../../web/src/p2p/end.js";
import { PairOrder, readBehind } from "../../web/src/p2p/order.js";
import { TransferCore } from "../../web/src/p2p/transfer.js";
import { ChildHistory } from "../../web/src/sync/child_history.js";
import { ChildrenCopyCore, ChildSet, childrenIn } from "../../web/src/sync/children.js";
import { ObserverCore } from "../../web/src/sync/copy.js";
import { RenewalsCore, RepeatsCore } from "../../web/src/sync/leases.js";
import { ReporterCore } from "../../web/src/sync/reporter.js";
import { ObserverRoute, RuntimeRoutes } from "../../web/src/sync/routes.js";
import { DeduplicationWindow, Transactions } from "../../web/src/transactions.js";
import * as value from "../../web/src/value.js";

/** The order of pairs, with the time of each call; calls return what is taken now, in order. */
class Order {
  #now = 0;
  #timers = new Map();
  #given = [];
  /** What the link in use announces; null: none is in use. */
  #link = null;
  #core = new PairOrder({
    now: () => this.#now,
    at: (when, act) => {
      this.#timers.set(act, when);
      return () => this.#timers.delete(act);
    },
  });

  #call(name, args, now) {
    this.#now = now;
    return this.#core[name](...args);
  }

  /** As the Message BUS takes what is given. */
  #taken() {
    const taken = [];
    for (let next = this.#given.shift(); next; next = this.#given.shift()) {
      const isLate = this.#core.isLate(...next);
      taken.push([instanceId(next[0]), isLate]);
      if (!isLate) this.#core.came(...next);
    }
    return taken;
  }

  tick(now) {
    this.#now = now;
    for (const [act, when] of this.#timers) if (when <= now && this.#timers.delete(act)) act();
    return this.#taken().sort();
  }

  /** As a stub announces a pair by a link that is new to it. */
  sent(message, isByNode, isBack, now) {
    this.#call("sent", [message, isByNode, isBack], now);
    if (isByNode) return null;
    this.#link ??= { pairs: new Set(), lines: [], announce(line) { this.lines.push(line); } };
    const { pairs } = this.#link;
    const pair = `${message.from} ${message.to}`;
    if (pairs.has(pair)) return null;
    pairs.add(pair);
    return this.behind(message.from, message.to, now, this.#link);
  }

  behind(from, to, now, link = { announce() {} }) {
    return this.#call("behind", [from, to, link], now);
  }

  settled(message, isReached, now) {
    this.#call("settled", [message, isReached], now);
    return this.#link?.lines.splice(0) ?? [];
  }

  lost() {
    this.#link = null;
  }

  read(line) {
    try {
      return readBehind(line);
    } catch {
      return "refused";
    }
  }

  came(message, now) {
    this.#call("arrives", [message], now);
    this.#given.push([message, ""]);
    return this.#taken();
  }

  announced(line, link, now) {
    this.#call("announced", [line, link], now);
    return this.#taken();
  }

  take(message, link, now) {
    this.#call("take", [message, link, () => this.#given.push([message, link])], now);
    return this.#taken();
  }
}

const CLASSES = {
  ChildHistory,
  ChildrenCopyCore,
  ChildSet,
  DeduplicationWindow,
  LinkEnd,
  ObserverCore,
  ObserverRoute,
  Order,
  RenewalsCore,
  RepeatsCore,
  ReporterCore,
  RuntimeRoutes,
  Transactions,
  TransferCore,
};

/** Cores that ask by a port, which is the argument of this number. */
const PORTS = { ChildrenCopyCore: 1, LinkEnd: 2, ObserverCore: 2, ObserverRoute: 0, ReporterCore: 1, RuntimeRoutes: 0 };

/** What the core has asked of its port. */
const asked = [];
/** A port, or the function that is one. */
const port = new Proxy((link) => void asked.push(["moveTo", link]), {
  get: (_, name) => (...given) => void asked.push([name, ...given]),
});

/** Calls whose arguments or results are not written as they are. */
const ODD = {
  "value valueAt": (_, args) => {
    const found = value.valueAt(...args);
    return found === undefined ? null : [found];
  },
  "ChildSet become": (one, [shown]) => one.become(childrenIn(shown, one.window)),
  "ChildSet take": taken,
  "ChildHistory take": taken,
  "ChildHistory sign": (one) => one.children.sign,
  "ChildrenCopyCore sign": (one) => one.children.sign,
  "ChildrenCopyCore window": (one, [window]) => void (one.children.window = window),
  "ChildrenCopyCore names": (one) => [...one.children.kept.keys()],
  "RepeatsCore repeated": (one, [now, observed]) => one.repeated(now, (url) => observed.includes(url)),
  "TransferCore takeOutput": (one, args) => one.takeOutput(...args).map((out) => out.line ?? out),
  "LinkEnd peerSeen": (one, [seen, now]) => {
    one.peerSeen(revived(seen), now);
    return asked.splice(0);
  },
  "RuntimeRoutes direct": (one, [url]) => one.direct(url).sort(),
  "Transactions answered": (one, args) => {
    const { transaction, ...more } = one.answered(...args);
    return { request: transaction?.request ?? null, ...more };
  },
  "Transactions crowd": (one, [first, last, now]) => {
    for (let { id } = first; id <= last; id += 1) {
      one.open({ ...first, id }, "waiter", now);
      one.giveUp({ ...first, id }, "no");
    }
  },
  "DeduplicationWindow crowd": (one, [first, count, now]) =>
    Array.from({ length: count }, (_, id) => one.isNew({ ...first, id }, now)).filter(Boolean).length,
};
function taken(one, args) {
  const result = one.take(...args);
  return typeof result === "object" ? ["refused", result.code, result.why] : result;
}

/** Infinity, which JSON has not. */
function revived(seen) {
  const { standing } = seen;
  if (standing?.until !== "never") return seen;
  return { ...seen, standing: { ...standing, until: Infinity } };
}

/** Calls that return nothing. */
const SILENT = /^(TransferCore (received|heard|timePassed)|RenewalsCore (granted|unanswered|ended))$/;

function call(kind, one, name, args) {
  const odd = ODD[`${kind} ${name}`];
  if (odd) return odd(one, args);
  const found = one[name];
  let result = found;
  try {
    if (typeof found === "function") result = found.call(one, ...args);
  } catch (error) {
    if (!(error instanceof BadMessageError)) throw error;
    return [["refused", error.code, error.message]];
  }
  if (result === undefined && kind in PORTS) return asked.splice(0);
  return SILENT.test(`${kind} ${name}`) ? null : result;
}

const plain = (result) =>
  sorted(JSON.parse(JSON.stringify(result ?? null, (_, one) => (one === Infinity ? "never" : one))));

let differing = 0;
let calls = 0;
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { kind, args, calls: made } = JSON.parse(line);
  if (kind in PORTS) args.splice(PORTS[kind], 0, port);
  asked.length = 0;
  const one = kind === "value" ? value : new CLASSES[kind](...args);
  for (const [index, [name, given, expected]] of made.entries()) {
    calls += 1;
    let found;
    try {
      found = plain(call(kind, one, name, given));
    } catch (error) {
      found = `thrown: ${error.stack}`;
    }
    if (found === plain(expected)) continue;
    differing += 1;
    if (differing < 4) {
      console.log(`${kind}, call ${index}: ${name} ${JSON.stringify(given)}`);
      console.log(`  in Python ${plain(expected)}\n  in JavaScript ${found}`);
    }
    break;
  }
}
console.log(`${calls} calls, ${differing} cases differ`);
