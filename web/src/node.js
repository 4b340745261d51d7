/** The stub that connects a runtime to its message node by a WebSocket (`protofly.v1`). */

import { sessionManager, statusOf } from "./address.js";
import { CODES, DROPS } from "./constants.js";
import * as constants from "./constants.js";
import { Host } from "./host.js";
import { BadMessageError, byteLength, isObject } from "./json.js";
import { partOf, signedParts } from "./keys.js";
import * as messages from "./message.js";
import { rateOf, StubClient } from "./session.js";

/** @typedef {import("./message.js").Message} Message */
/** @typedef {import("./json.js").JsonObject} JsonObject */
/** @typedef {import("./session.js").Method} Method */

/** The WebSocket subprotocol of Protofly's stubs. */
const PROTOCOL = "protofly.v1";

/**
 * The part of a WebSocket that a stub uses.
 * @typedef {Pick<WebSocket, "send" | "close" | "bufferedAmount" | "onopen" | "onmessage" |
 *   "onclose" | "onerror">} Socket
 */

/**
 * The statements of a node about this runtime.
 * @typedef {{identity: import("./message.js").SenderIdentity | null, statement: string | null,
 *   domainKeys: JsonObject | null,
 *   assertion: string | null}} Said
 */

/**
 * @typedef {object} StubOptions
 * @property {string} url address of the stub
 * @property {string} nodeUrl
 * @property {(() => Promise<string | null>) | null} credentials gets the token for each login
 * @property {boolean} isSingleToken whether they are one token, which helps no second time
 * @property {import("./keys.js").RuntimeKey | null} key
 * @property {string | null} session token of an earlier session
 * @property {(said: Partial<Said>) => void} onSaid
 * @property {(url: string, protocol: string) => Socket} connect
 */

/** Stub to a message node: session, login and reconnection; `take` sends a message to the node. */
export class NodeStub {
  isStub = true;
  #tools;
  #port;
  #options;
  #host;
  /** @type {Link | null} */
  #link = null;
  #attempts = 0;
  /** @type {Message[]} */
  #leaveAsked = [];
  /** @type {string | null} */
  #token;

  /**
   * @param {import("./bus.js").Tools} tools
   * @param {import("./bus.js").Port} port
   * @param {StubOptions} options
   */
  constructor(tools, port, options) {
    this.#tools = tools;
    this.#port = port;
    this.#options = options;
    this.#token = options.session;
    this.name = options.url;
    /** @type {import("./session.js").StubPort} */
    const does = {
      step: (step) => this.#stepped(step),
      dial: () => this.#dial(),
      hangUp: () => {
        this.#link?.hangUp();
        this.#link = null;
      },
      ask: (...asked) => void this.#ask(...asked),
      write: (message) => this.#write(message),
      queued: (message) => tools.trace.message(this.#actor, "queue", message),
      released: (message) => tools.trace.message(this.#actor, "flush", message),
      refuse: (...refused) => this.#refuse(...refused),
      drop: (...dropped) => this.#drop(...dropped),
      ended: () => {
        for (const request of this.#leaveAsked.splice(0)) port.post(messages.replyTo(request, CODES.OK));
      },
    };
    this.#host = new Host(tools.clock, does, (asked) =>
      new StubClient(options.url, asked, Math.random, options.session, tools.runtime));
  }

  get #core() {
    return this.#host.core;
  }

  get #actor() {
    return `stub:${this.#options.url}`;
  }

  get #sessionName() {
    return `${this.#options.url}/session/${this.#core.sessions}`;
  }

  /** State of its connection. */
  get state() {
    return this.#core.state;
  }

  /** Token of its session: it resumes the session, also after a reload. Keep it secret. */
  get session() {
    return this.#token;
  }

  /** Number of messages that wait for the session, or for the rate of the node. */
  get queued() {
    return this.#core.queued;
  }

  /** Begin to connect. */
  start() {
    this.#host.run((core) => core.begin());
  }

  /**
   * Send a message to the node, or execute a command for the stub.
   *
   * @param {Message} message
   */
  take(message) {
    if (message.to === this.#options.url) this.#command(message);
    else this.#host.run((core, now) => core.send(message, now));
    return true;
  }

  /** @param {Message} message */
  #command(message) {
    if (messages.isResponse(message)) return;
    const { method, link } = message.body;
    if (method === "renewed") {
      if (link === this.#sessionName) this.#host.run((core, now) => core.endRenewal(core.sessions, now));
      this.#port.post(messages.replyTo(message, CODES.OK));
    } else if (method === "connect") {
      this.#host.run((core, now) => core.connect(now));
      this.#port.post(messages.replyTo(message, CODES.ACCEPTED));
    } else if (method === "disconnect") {
      this.#leaveAsked.push(message);
      this.#host.run((core, now) => core.disconnect(now));
    } else {
      this.#port.post(messages.refuse(message, CODES.MALFORMED, "a stub is told to connect or disconnect"));
    }
  }

  // ---- what the core asks for

  /** @param {import("./machine.js").Step} step */
  #stepped(step) {
    this.#tools.trace.step(this.#actor, step);
    if (step.machine !== "stub_connection") return;
    const { url } = this.#options;
    const description = step.why ? { description: step.why } : {};
    const link = step.new === "live" ? { link: this.#sessionName } : {};
    this.#port.publish("update", statusOf(url), { value: step.new, ...description, ...link });
  }

  /**
   * @param {Message} message
   * @param {number} code
   * @param {string} why
   * @param {number | null} [retryAfter]
   */
  #refuse(message, code, why, retryAfter = null) {
    const response = messages.refuse(message, code, why, retryAfter);
    const ref = `${message.from}#${message.id}`;
    this.#tools.trace.message(this.#actor, "synth", response, { ref });
    this.#port.post(response);
  }

  /**
   * @param {Message} message
   * @param {string} reason
   */
  #drop(message, reason) {
    this.#tools.counters.drop(reason, this.#actor, message);
    this.#tools.trace.message(this.#actor, "drop", message, { reason });
  }

  // ---- the link

  #dial() {
    this.#attempts += 1;
    const { nodeUrl, connect, credentials } = this.#options;
    const link = new Link(`websocket-${this.#attempts}-out`, this.#tools.clock, {
      opened: () => this.#link === link && this.#host.run((core, now) => core.dialled(now)),
      lost: (why) => this.#link === link && this.#lost(why),
      wrote: (count) => this.#link === link && this.#host.run((core) => core.noteWritten(count)),
      read: (frame) => this.#link === link && this.#read(frame, link),
    });
    this.#link = link;
    if (!credentials || this.#core.hasSession) return link.dial(connect, nodeUrl);
    // The node waits for a login only for seconds: the token is there before it is dialled.
    void this.#login().then((login) => {
      if (this.#link !== link) return;
      link.login = login;
      link.dial(connect, nodeUrl);
    });
  }

  /** @param {string} why */
  #lost(why) {
    this.#link = null;
    this.#host.run((core, now) => core.loseLink(why, now));
  }

  /** @returns {Promise<Login>} */
  async #login() {
    try {
      return { token: (await this.#options.credentials?.()) ?? null, error: "" };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return { token: null, error: `no token for the login: ${why}` };
    }
  }

  /**
   * @param {Method} method
   * @param {string | null} token of the session
   * @param {string | null} challenge
   */
  async #ask(method, token, challenge) {
    const link = this.#link;
    if (!link) return;
    let shown = token;
    if (method === "open" && challenge !== null) shown = link.shown;
    else if (method === "open" && this.#options.credentials) {
      const login = link.login ?? (await this.#login());
      link.login = null;
      if (this.#link !== link) return;
      if (login.error) {
        const { UNAVAILABLE } = CODES;
        return this.#takeAnswer({ method, code: UNAVAILABLE, why: login.error });
      }
      shown = link.shown = login.token;
    }
    const params = await this.#params(method, shown, challenge);
    if (this.#link !== link) return;
    const { url } = this.#options;
    const id = this.#tools.ids.next(url);
    link.controls.set(id, method);
    const to = sessionManager(this.#tools.domain);
    const body = /** @type {JsonObject} */ ({ method, params });
    link.write(messages.writeLine({ id, type: "execute", from: url, to, body }), 0);
  }

  /**
   * Return the arguments of a session request: the key, and a proof if there is a challenge.
   *
   * @param {Method} method
   * @param {string | null} token
   * @param {string | null} challenge
   */
  async #params(method, token, challenge) {
    const { key } = this.#options;
    const { runtime, domain } = this.#tools;
    const params = { runtimeURL: runtime, ...(token === null ? {} : { token }) };
    if (!key || (method !== "open" && method !== "re-open")) return params;
    if (challenge === null) return { ...params, key: key.public };
    const proof = await key.sign(method, await signedParts(domain, runtime, challenge, token));
    return { ...params, key: key.public, proof };
  }

  /** @param {Message} message */
  #write(message) {
    const { url } = this.#options;
    const link = this.#link;
    if (!link) return;
    if (messages.viaOf(message).includes(url)) {
      this.#drop(message, DROPS.LOOP);
      return this.#host.run((core) => core.forget(message));
    }
    const { identity: _, ...plain } = messages.stamped(message, url);
    try {
      const line = messages.writeLine(plain);
      if (byteLength(line) > constants.MAX_MESSAGE_BYTES) {
        throw new BadMessageError(`larger than ${constants.MAX_MESSAGE_BYTES} bytes`, CODES.TOO_LARGE);
      }
      this.#tools.trace.crossed(this.#actor, "xmit", plain, url, link.name);
      link.write(line, 1);
    } catch (error) {
      const { code, message: why } = error instanceof BadMessageError
        ? error
        : new BadMessageError(`its body is no JSON: ${error}`, CODES.INTERNAL);
      this.#host.run((core) => core.forget(message));
      if (messages.isRequest(message)) this.#refuse(message, code, why);
      else this.#drop(message, DROPS.MALFORMED);
      if (messages.isFinal(message)) this.#host.run((core, now) => core.send(messages.malformedAnswer(message, why), now));
    }
  }

  // ---- what came over the link

  /**
   * @param {unknown} frame
   * @param {Link} link
   */
  #read(frame, link) {
    if (typeof frame !== "string") return this.#hangUpOn(link, "the node sends what is no text");
    // Most frames are that short in any encoding.
    if (frame.length * 3 > constants.MAX_FRAME_BYTES && byteLength(frame) > constants.MAX_FRAME_BYTES) {
      return this.#hangUpOn(link, "the node sends a frame that is too large");
    }
    this.#host.run((core, now) => core.noteLife(now));
    for (const line of messages.readFrame(frame)) {
      if (this.#link !== link) return;
      if ("error" in line) {
        if (!link.mayErr()) return this.#hangUpOn(link, "the node sends what is malformed");
        this.#tools.counters.drop(DROPS.MALFORMED, this.#actor);
        if (line.answer) link.write(messages.writeLine(line.answer), 0);
      } else this.#heard(line, link);
    }
  }

  /**
   * Close the link because of an invalid message of the node.
   *
   * @param {Link} link
   * @param {string} why
   */
  #hangUpOn(link, why) {
    this.#tools.counters.drop(DROPS.MALFORMED, this.#actor);
    link.hangUp();
    this.#lost(why);
  }

  /**
   * @param {Message} message
   * @param {Link} link
   */
  #heard(message, link) {
    const { url } = this.#options;
    const isControl = message.to === url && message.from === sessionManager(this.#tools.domain);
    if (!isControl) return this.#inbound(message, link);
    if (messages.isRequest(message)) return link.write(messages.writeLine(messages.replyTo(message, CODES.OK)), 0);
    const method = link.controls.get(message.id);
    if (!messages.isResponse(message) || !method) return this.#drop(message, DROPS.UNMATCHED);
    if (messages.codeOf(message) >= 200) link.controls.delete(message.id);
    this.#answered(method, message);
  }

  /** @param {import("./session.js").Answer} answer */
  #takeAnswer(answer) {
    this.#host.run((core, now) => core.takeAnswer(answer, now));
  }

  /**
   * @param {Method} method
   * @param {Message} message
   */
  #answered(method, message) {
    const code = messages.codeOf(message);
    const value = isObject(message.body.value) ? message.body.value : {};
    const why = messages.reasonIn(message);
    if (!messages.isSuccess(message)) {
      const challenge = typeof value.challenge === "string" ? value.challenge : null;
      const { credentials, isSingleToken } = this.#options;
      const login = method === "open" && challenge === null ? this.#link?.shown ?? "" : "";
      const isUseless = code === CODES.UNAUTHENTICATED && login !== "" && isSingleToken;
      const isLasting = credentials !== null && (code === CODES.CONFLICT || isUseless);
      const isPassing = "retryAfter" in message.body;
      return this.#takeAnswer({ method, code, why, challenge, isLasting, isPassing, login });
    }
    const statement = typeof value.statement === "string" ? value.statement : null;
    if (isObject(value.domainKeys)) {
      this.#options.onSaid({ statement, domainKeys: value.domainKeys });
      const life = lifeOf(statement);
      if (life !== null) this.#host.run((core, now) => core.noteStatement(life, now));
    }
    const token = typeof value.sessionToken === "string" ? value.sessionToken : null;
    if (token === null || (method !== "open" && method !== "re-open")) {
      return this.#takeAnswer({ method, code, why });
    }
    this.#token = token;
    this.#options.onSaid({ identity: messages.readSender(value.identity) });
    if (method === "open") {
      const shown = this.#link?.shown ?? null;
      const jkt = this.#options.key?.thumbprint;
      // Peers learn of a login by its token, if that is of no use to others.
      this.#options.onSaid({ assertion: jkt && claimsOf(shown).cnf?.jkt === jkt ? shown : null });
    }
    const isEmptied = value.emptied === true;
    this.#takeAnswer({ method, code, why, token, isEmptied, rate: rateOf(value) });
  }

  /**
   * @param {Message} message
   * @param {Link} link
   */
  #inbound(message, link) {
    const { url } = this.#options;
    if (messages.viaOf(message).includes(url)) return this.#drop(message, DROPS.LOOP);
    const arrived = messages.stamped(message, url);
    this.#tools.trace.crossed(this.#actor, "rcv", arrived, url, link.name);
    this.#port.post(arrived);
  }
}

/**
 * Return for how many seconds a statement of the domain is valid; null: it has no such time.
 *
 * @param {string | null} statement
 */
function lifeOf(statement) {
  const { exp } = claimsOf(statement);
  return typeof exp === "number" ? exp - Date.now() / 1000 : null;
}

/**
 * Return the claims in a token, without verifying the signature.
 *
 * @param {string | null} token
 * @returns {any}
 */
function claimsOf(token) {
  try {
    return partOf((token ?? "").split(".")[1]) ?? {};
  } catch {
    return {};
  }
}

/** @typedef {{token: string | null, error: string}} Login */

/**
 * The events that a link reports.
 * @typedef {{opened: () => unknown, lost: (why: string) => unknown,
 *   wrote: (count: number) => unknown, read: (frame: unknown) => unknown}} Events
 */

/** One WebSocket connection to the node, with its unsent lines. */
class Link {
  #clock;
  #events;
  /** @type {Socket | null} */
  #socket = null;
  #isOver = false;
  #cancel = () => {};
  /** @type {string[]} */
  #lines = [];
  #written = 0;
  #isWoken = false;
  /** @type {number[]} */
  #errors = [];
  /** Session controls that are not answered yet. @type {Map<number, Method>} */
  controls = new Map();
  /** The token for a login, got before the link was dialled. @type {Login | null} */
  login = null;
  /** The token that the open request showed, which its repetition with a proof shows again.
   * @type {string | null} */
  shown = null;

  /**
   * @param {string} name
   * @param {import("./clock.js").Clock} clock
   * @param {Events} events
   */
  constructor(name, clock, events) {
    this.name = name;
    this.#clock = clock;
    this.#events = events;
  }

  /**
   * @param {(url: string, protocol: string) => Socket} connect
   * @param {string} url
   */
  dial(connect, url) {
    if (this.#isOver) return;
    let socket;
    try {
      socket = connect(url, PROTOCOL);
    } catch (error) {
      return void queueMicrotask(() => this.#end(`it cannot be dialled: ${error}`));
    }
    this.#socket = socket;
    const patience = this.#clock.now() + constants.DIAL_TIMEOUT;
    this.#cancel = this.#clock.at(patience, () => this.#end("it does not answer"));
    socket.onopen = () => {
      if (this.#isOver) return;
      this.#cancel();
      this.#events.opened();
    };
    socket.onmessage = ({ data }) => {
      if (!this.#isOver) this.#events.read(data);
    };
    socket.onclose = ({ code, reason }) => this.#end(reason || `the link was closed (${code})`);
    socket.onerror = () => {};
  }

  /**
   * Queue a line, which is sent with the next frame.
   *
   * @param {string} line
   * @param {number} count how many it counts as
   */
  write(line, count) {
    this.#lines.push(line);
    this.#written += count;
    this.#wake();
  }

  #wake() {
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => this.#flush());
  }

  #flush() {
    this.#isWoken = false;
    const socket = this.#socket;
    if (this.#isOver || !socket || !this.#lines.length) return;
    // A WebSocket says how much waits in it, but not when that has left.
    if (socket.bufferedAmount > constants.OUTBOX_BYTES) {
      this.#isWoken = true;
      this.#clock.at(this.#clock.now() + constants.PACE_SLICE, () => this.#flush());
      return;
    }
    const count = this.#written;
    this.#written = 0;
    try {
      for (const frame of messages.frames(this.#lines.splice(0))) socket.send(frame);
    } catch (error) {
      return this.#end(`it cannot be written to: ${error}`);
    }
    if (count) this.#events.wrote(count);
  }

  /** Return whether one more malformed line is accepted. */
  mayErr() {
    const now = this.#clock.now();
    this.#errors = [...this.#errors.filter((at) => now - at < constants.ERROR_WINDOW), now];
    return this.#errors.length <= constants.MAX_MALFORMED;
  }

  /** @param {string} why */
  #end(why) {
    if (this.#isOver) return;
    this.hangUp();
    this.#events.lost(why);
  }

  /** Close the connection at once, in any state. Idempotent. */
  hangUp() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancel();
    const socket = this.#socket;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // What was written last, such as the end of the session, leaves first.
    void this.#clock.at(this.#clock.now() + constants.GOODBYE_TIMEOUT / 10, () => socket.close());
  }
}
