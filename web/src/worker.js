/**
 * Code inside a sandbox: a Worker that loads this module runs the code of one hyperty.
 *
 * The Worker has no network. A node serves this module with a Content-Security-Policy that forbids
 * all requests; other interfaces to the network are removed from the globals before the code of the
 * hyperty is loaded.
 */

import { CLOCK } from "./clock.js";
import { BadMessageError } from "./json.js";
import { codeFrom, Hyperty, Refusal } from "./hyperty.js";
import { Trace } from "./trace.js";

/** @typedef {import("./message.js").Message} Message */

/** The error that a sandbox could not start, or has ended. */
export class SandboxError extends Error {
  /** @param {string} reason */
  constructor(reason) {
    super(reason);
    this.name = "SandboxError";
  }
}

/** Name of the Workers that are sandboxes. */
export const SANDBOX = "protofly-sandbox";

/** Globals that are removed from a sandbox, as they give access to the network or to storage. */
const CUT = [
  ...["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "EventSource", "WebTransport"],
  ...["importScripts", "Worker", "SharedWorker", "BroadcastChannel", "indexedDB", "caches"],
  ...["cookieStore", "Notification", "RTCPeerConnection", "RTCDataChannel", "SharedArrayBuffer"],
  ...["requestFileSystem", "webkitRequestFileSystem", "webkitRequestFileSystemSync", "showOpenFilePicker"],
  ...["FileReaderSync", "postMessage", "close", "onmessage", "addEventListener", "reportError"],
];

/** @typedef {{do: "start", url: string, runtime: string, name: string, source: string,
 *   credits: number, id: number, port: MessagePort}} Start */

function cut() {
  for (let scope = /** @type {object | null} */ (globalThis); scope; scope = Object.getPrototypeOf(scope)) {
    for (const name of [...CUT, "navigator"]) {
      if (!Object.prototype.hasOwnProperty.call(scope, name)) continue;
      try {
        Object.defineProperty(scope, name, { value: undefined, writable: false, configurable: false });
      } catch {
        // The global is read-only in this browser: only the Content-Security-Policy protects.
      }
    }
  }
}

/** Wait for the message of the sandbox host with the code of a hyperty, then run the code. */
export function serve() {
  globalThis.addEventListener("message", ({ data }) => void run(data), { once: true });
}

/**
 * Load a module from its text, without the network.
 *
 * @param {string} text
 */
async function load(text) {
  const module = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return await import(module);
  } finally {
    URL.revokeObjectURL(module);
  }
}

/** @param {Start} start */
async function run({ url, runtime, name, source, credits, id, port }) {
  const post = port.postMessage.bind(port);
  const { parse, stringify } = JSON;
  /** @type {Map<number, {resolve: (answer: Message) => void, provisional?: (m: Message) => void}>} */
  const waiting = new Map();
  /** @type {Message[]} */
  const queue = [];
  let left = credits;
  let last = id;

  const flush = () => {
    while (left > 0 && queue.length) {
      left -= 1;
      post({ do: "post", text: stringify(queue.shift()) });
    }
  };
  /** @param {Message} message */
  const send = (message) => {
    queue.push(message);
    flush();
  };
  // The page uses the ids between these.
  const nextId = () => (last += 2);
  /** @type {import("./hyperty.js").Outlet["request"]} */
  const request = (message, terms) =>
    new Promise((resolve) => {
      waiting.set(message.id, { resolve, provisional: terms?.provisional });
      send(message);
    });
  /** @type {import("./objects.js").ObjectHost["port"]} */
  const own = {
    post: send,
    request,
    ask: (type, to, body) => request({ id: nextId(), type, from: url, to, body }),
  };
  /** @type {(said: {text: string} | {why: string}) => void} */
  let loaded = () => {};
  /** @type {Promise<import("./objects.js").Objects> | null} */
  let loading = null;
  const objects = () =>
    (loading ??= (async () => {
      const answer = new Promise((resolve) => (loaded = resolve));
      post({ do: "load" });
      const reply = await answer;
      if ("why" in reply) throw new Error(`data objects cannot be loaded: ${reply.why}`);
      const { Objects } = await load(reply.text);
      // The trace belongs to the page, which accepts no records from a Worker.
      const trace = new Trace({ node: name, keeps: false });
      return new Objects({ url, runtime, port: own, trace, clock: CLOCK, nextId });
    })());
  const registry = `${runtime}/registry`;
  const hyperty = new Hyperty(url, name, { nextId, post: send, request, objects, registry });
  /** @type {import("./hyperty.js").Code | null} */
  let code = null;
  port.onmessage = ({ data }) => {
    if (data.do === "beat") post({ do: "beat" });
    else if (data.do === "status") {
      hyperty.told(data.url, data.status);
      post({ do: "told" });
    } else if (data.do === "credit") {
      left += data.count;
      flush();
    } else if (data.do === "loaded") loaded(data);
    else if (data.do === "answer") {
      const message = parse(data.text);
      const waiter = waiting.get(message.id);
      if (!data.isFinal) waiter?.provisional?.(message);
      else {
        waiting.delete(message.id);
        waiter?.resolve(message);
      }
    } else if (data.do === "deliver" && code) {
      void hyperty.handle(code, parse(data.text)).finally(() => post({ do: "taken" }));
    }
  };
  cut();
  Object.defineProperty(globalThis, "Refusal", { value: Refusal });
  try {
    code = codeFrom((await load(source)).default, hyperty);
    if (code.invited) await hyperty.loadObjects();
    await code.started?.(hyperty);
    post({ do: "started" });
  } catch (error) {
    post({ do: "failed", why: String(error instanceof BadMessageError ? error.message : error) });
  }
}
