/** Types of `protofly.js`: a runtime of hyperties in a browser. */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json | undefined };

export type MessageType =
  | "create" | "read" | "update" | "delete" | "subscribe" | "unsubscribe" | "execute" | "forward"
  | "response";

/** The sender of a message, as the own node has established it. */
export interface SenderIdentity {
  runtime: string;
  user: string | null;
  vouchedBy: string;
}

/** One message; nothing of it is changed in place. */
export interface Message {
  readonly id: number;
  readonly type: MessageType;
  readonly from: string;
  readonly to: string;
  readonly body: JsonObject;
  readonly identity?: SenderIdentity;
}

/** A hyperty: an address, and what it sends. */
export interface Hyperty {
  readonly url: string;
  readonly name: string;
  /** Send a request and return the value of the answer; a refusal is thrown as `Refusal`. */
  request(
    to: string,
    value?: Json,
    options?: {
      type?: MessageType;
      body?: JsonObject;
      provisional?: (message: Message) => void;
      /** Gives the request up: the handler of the receiver is cancelled. */
      signal?: AbortSignal;
      /** Seconds that the answer is awaited, 600 at most; then it is 408. */
      answerWithin?: number;
    },
  ): Promise<Json>;
  /** Send a request and return the whole final answer, also if it is a refusal. */
  ask(
    type: MessageType,
    to: string,
    body: JsonObject,
    terms?: { provisional?: (message: Message) => void; signal?: AbortSignal; answerWithin?: number },
  ): Promise<Message>;
  /** Send a provisional answer to a request; the final answer comes later. */
  progress(request: Message, value?: Json): void;
  /** Send an event to the inbox of another hyperty; nobody answers it. */
  send(to: string, value: Json): void;
  /** Report a new data object. Of a hyperty in a Worker, only the code there can. */
  report(schema: string, value: JsonObject, options?: ReportOptions): Promise<ReportedObject>;
  /** Observe a data object; it has its value from the beginning. As `report`. */
  observe(url: string, options?: { p2p?: boolean }): Promise<ObservedObject>;
  /**
   * Follow the status of a record of a hyperty or data object: it is reported now, and each time
   * that it changes; null: there is no record. The result ends that. As `report`.
   */
  follow(url: string, report: (status: string | null) => void): Promise<() => Promise<void>>;
}

export interface ReportOptions {
  /** Name for people. */
  name?: string;
  /** What it is about. */
  resources?: string[];
  /** Hyperties that may observe without a question. */
  allow?: string[];
  /** Whether every hyperty may. */
  public?: boolean;
  /** Hyperties that are invited. */
  observers?: string[];
  /** The children that the object keeps: the oldest leave for newer ones. Without it, it keeps all. */
  children?: ChildWindow;
}

/** The newest children of a data object, which it keeps. */
export interface ChildWindow {
  /** Number of children, at most 1000, which is the default. */
  last?: number;
  /** Bytes of their values as JSON, with their names: 16384 to 262144, which is the default. */
  bytes?: number;
  /** Seconds after which a child leaves; without it, it leaves for newer ones only. */
  seconds?: number;
}

/** The effect of a change; `path` is empty for the whole value; null: nothing was, or is there. */
export interface ObjectChange {
  path: string;
  old: Json;
  new: Json;
  version: number;
}

/** A data object of this hyperty. What is refused is thrown as `Refusal`. */
export interface ReportedObject {
  readonly url: string;
  /** The published value, which cannot be changed in place. */
  readonly value: JsonObject;
  readonly version: number;
  readonly children: Children;
  get observers(): string[];
  /** Set an attribute, and return the version with it; null removes it. Missing objects are made. */
  set(path: string, value: Json): Promise<number>;
  remove(path: string): Promise<number>;
  /** Append elements to a list, which is made if it does not exist. */
  add(path: string, ...elements: Json[]): Promise<number>;
  /** Remove all elements of a list that equal one of these. */
  discard(path: string, ...elements: Json[]): Promise<number>;
  /** Give it another value, as a whole. */
  replace(value: JsonObject): Promise<number>;
  allow(observer: string): Promise<void>;
  expel(observer: string): Promise<void>;
  /** Invite a hyperty, and wait for its answer; it may observe after any answer. */
  invite(observer: string): Promise<void>;
  /** Call a function when an observer joins or leaves; the result ends that. */
  on(
    name: "observer",
    listener: (event: { observer: string; isThere: boolean }) => void,
  ): () => void;
  /** Delete it; all observers are notified. Idempotent. */
  close(): Promise<void>;
}

/** A copy of a data object, which follows each change. */
export interface ObservedObject {
  readonly url: string;
  readonly children: Children;
  /** The newest value, which cannot be changed in place. */
  get value(): JsonObject;
  get version(): number;
  /** Whether changes were lost, and the object is being read. */
  get isStale(): boolean;
  /** Why no change will come any more; null: changes come. */
  get gone(): Refusal | null;
  /** Call a function for each change, or at the end of the object; the result ends that. */
  on(name: "change", listener: (change: ObjectChange) => void): () => void;
  on(name: "end", listener: (why: Refusal) => void): () => void;
  /** Wait until a condition holds for the value, and return the value. */
  waitFor(holds: (value: JsonObject) => boolean): Promise<JsonObject>;
  /** Stop to observe it. Idempotent. */
  close(): Promise<void>;
}

/** All children of a data object, the oldest first; of an object with a window, the newest. */
export interface Children extends Iterable<Child> {
  get size(): number;
  /** Number of children that left the window before they could be read, while observing. */
  get missed(): number;
  get(id: string): Child | undefined;
  /** Create a child, and wait until the reporter's runtime has it. */
  create(value: Json): Promise<Child>;
  /** `new` is null if it was deleted, or has left the window; `missed` counts those missed before. */
  on(
    name: "change",
    listener: (change: { id: string; old: Json; new: Json; missed: number }) => void,
  ): () => void;
}

/** One child of a data object; only its creator changes it, and the reporter may delete it. */
export interface Child {
  readonly id: string;
  get creator(): string;
  /** Its value, which cannot be changed in place; null: it was deleted. */
  get value(): Json;
  update(value: Json): Promise<void>;
  delete(): Promise<void>;
}

/** A hyperty that was deployed. */
export interface Deployed extends Hyperty {
  /** Unregister and stop it, and give its address back. Idempotent. */
  close(): Promise<void>;
  /** Unregister and stop it; the next one of its descriptor, or else name, has its address. */
  rest(): Promise<void>;
}

/**
 * The code of a hyperty. `request` returns the value of the answer; what it throws refuses. Its
 * signal is aborted when the requester has given up: what it returns then goes nowhere.
 */
export interface Code {
  started?(hyperty: Hyperty): unknown;
  request?(message: Message, hyperty: Hyperty, signal: AbortSignal): unknown;
  /** Seconds that a request may take, 600 at most, unless its requester names a time. */
  answerWithin?: number;
  event?(message: Message, hyperty: Hyperty): unknown;
  /** Decides whether a hyperty may observe an object; returning accepts, the default refuses. */
  subscribe?(
    asked: { object: string; observer: string; identity?: SenderIdentity },
    hyperty: Hyperty,
  ): unknown;
  /** Takes an invitation to an object; without it, `request` does. */
  invited?(
    invitation: { object: string; reporter: string; schema: string; value: Json },
    hyperty: Hyperty,
  ): unknown;
}

/** Time as the runtime takes it, in seconds. */
export interface Clock {
  now(): number;
  at(moment: number, act: () => void): () => void;
}

/** The part of a WebSocket that a runtime uses. */
export type Socket = Pick<
  WebSocket,
  "send" | "close" | "bufferedAmount" | "onopen" | "onmessage" | "onclose" | "onerror"
>;

export interface RuntimeOptions {
  domain: string;
  /** URL of the node, such as wss://node.a.example/link. */
  node: string;
  /** Name of the runtime; without it, one by chance. */
  name?: string;
  /** Token for a login, or what gets one for each login; a token is good for one login. */
  token?: string | (() => string | Promise<string>);
  /** Ed25519; without it, a new one; null: no key is shown. */
  key?: CryptoKeyPair | null;
  /** Token of a session to resume, from `runtime.session`. */
  session?: string;
  /** Whether records are kept; false. */
  trace?: boolean | { limit?: number };
  /** Judges each message that crosses the runtime: null permits it, a text says why not. */
  policy?: (message: Message, direction: "in" | "out") => string | null;
  /** Where a Worker loads this module from; the module's own URL. */
  worker?: string | URL;
  /** Whether direct links are used; false. */
  p2p?: boolean | P2pOptions;
  /** Permits ws: to another machine; false. */
  insecure?: boolean;
  /** Called when the node has ended the session for good. */
  onEnd?: (reason: string) => unknown;
  connect?: (url: string, protocol: string) => Socket;
  clock?: Clock;
}

export interface P2pOptions {
  /** STUN and TURN servers; without them, those that the domain names. */
  iceServers?: RTCIceServer[];
  /** Whether links use TURN servers only, so that no peer learns an address of the user; false. */
  relayOnly?: boolean;
  /** Who has to vouch for the other end, at least: with a token for a login its domain, else none. */
  require?: "identity-provider" | "domain" | "none";
  /** Identity providers that are believed, by the name that their tokens have (`iss`). */
  issuers?: Record<string, Issuer>;
}

/** An identity provider whose tokens say who a peer is. */
export interface Issuer {
  /** Its set of keys (RFC 7517), or a function that gets it each time that a peer shows a token. */
  keys: JsonObject | (() => JsonObject | Promise<JsonObject>);
  /** What its tokens are meant for; without it, the domain of the peer, or its node. */
  audience?: string[];
  /** Clients to which they may have been issued, besides. */
  clients?: string[];
}

/** A direct link, or one that is being set up. */
export interface DirectLink {
  /** Address of the runtime at the other end. */
  runtime: string;
  /** Address of this end. */
  link: string;
  /** Whether messages go by it. */
  isLive: boolean;
}

export interface DeployOptions {
  /** Hash of the module, as HTML writes it, such as sha256-... */
  integrity?: string;
  /** Catalogue address of its descriptor. */
  descriptor?: string;
  /** The address that it has to have: of a hyperty of its descriptor, or else name, that rests. */
  address?: string;
  /** What others search for. */
  resources?: string[];
  dataSchemes?: string[];
  /** Is called if the sandbox ends by itself. */
  onEnded?: (why: string) => void;
}

/** An entity moved. */
export interface Step {
  machine: string;
  key: string;
  old: string;
  new: string;
  cause: string;
  why: string;
}

/** The records of a runtime. */
export interface Trace {
  /** Name of this run. */
  readonly run: string;
  /** Where the text belongs below a directory of traces. */
  readonly path: string;
  /** Number of records. */
  readonly length: number;
  /** Number of records that were not kept. */
  readonly dropped: number;
  /** Report each step from now on, also where no record is kept; the result ends the reports. */
  listen(listener: (step: Step) => void): () => void;
  /** Return all records, as JSON Lines. */
  text(): string;
  /** Offer the records to the user of the page as a file. */
  download(): void;
}

export interface Drop {
  reason: string;
  actor: string;
  from: string;
  to: string;
  type: string;
  id: number;
}

/** One runtime. */
export class Runtime {
  private constructor();
  readonly url: string;
  readonly domain: string;
  readonly key: RuntimeKey | null;
  readonly trace: Trace;
  /** How many messages were dropped, by reason, and the last ones. */
  readonly counters: { readonly drops: Map<string, number>; readonly last: Drop[] };
  /** Sender, statement and keys of the domain, as the node has said. */
  readonly said: {
    readonly identity: SenderIdentity | null;
    readonly assertion: string | null;
    readonly statement: string | null;
    readonly domainKeys: JsonObject | null;
  };
  /** Token that resumes the session after a reload. Keep it secret. */
  get session(): string | null;
  /** State of the connection to the node. */
  get state(): string;
  /** Why the node has ended the session for good; null: it has not. */
  get endReason(): string | null;
  get hyperties(): Deployed[];
  /** The direct links. */
  get p2p(): DirectLink[];
  /** Deploy a module in a Worker, named by its URL or in a Blob; or an object or class in the page. */
  deploy(
    name: string,
    code: string | URL | Blob | Code | (new (hyperty: Hyperty) => Code) | ((hyperty: Hyperty) => Code),
    options?: DeployOptions,
  ): Promise<Deployed>;
  /** Send a request in the name of the runtime, and return the whole answer. */
  ask(type: MessageType, to: string, body: JsonObject): Promise<Message>;
  /** Find hyperties of a user in a domain. */
  find(
    user: string,
    options?: { domain?: string; resources?: string[]; dataSchemes?: string[] },
  ): Promise<JsonObject[]>;
  /**
   * Follow the status of a record: it is reported now, and each time that it changes; null: there
   * is no record. The result ends that.
   */
  follow(url: string, report: (status: string | null) => void): Promise<() => Promise<void>>;
  /** Unregister and stop all hyperties, end the session, and end the trace. Idempotent. */
  close(): Promise<void>;
}

/** Open a runtime, and its session with the node. */
export function openRuntime(options: RuntimeOptions): Promise<Runtime>;

/** The key of a runtime. */
export class RuntimeKey {
  private constructor();
  /** 32 bytes in base64url. */
  readonly public: string;
  /** Name of the key (RFC 7638): the value of `cnf.jkt` of a login token that is bound to it. */
  readonly thumbprint: string;
  sign(purpose: string, parts: string[]): Promise<string>;
}

/** Make a key, or take one that was made before. */
export function openKey(pair?: CryptoKeyPair): Promise<RuntimeKey>;

/** A request was refused: by the other end if it is caught, by a hyperty if it is thrown. */
export class Refusal extends Error {
  constructor(code: number, reason: string, retryAfter?: number | null);
  readonly code: number;
  readonly reason: string;
  readonly retryAfter: number | null;
}

/** A request of the runtime itself was refused. */
export class RefusedError extends Error {
  private constructor();
  readonly code: number;
  readonly reason: string;
  readonly retryAfter: number | null;
}

/** A sandbox could not be started. */
export class SandboxError extends Error {
  private constructor();
}

/** A text is no address. */
export class AddressError extends Error {
  private constructor();
}

/** A message breaks a rule. */
export class BadMessageError extends Error {
  private constructor();
  readonly code: number;
}

/** A machine: `stays` says how many seconds an entity may be in a state. */
export interface Table {
  ends: string[];
  stays: Readonly<Record<string, number>>;
  rows: (string | string[])[][];
}

/** The machines by name. */
export const MACHINES: Readonly<Record<string, Table>>;

/** The state before the first. */
export const ABSENT: "[*]";

/** One entity of a machine. */
export class Entity {
  constructor(machine: string, key: string);
  readonly machine: string;
  readonly key: string;
  get state(): string | null;
  get patience(): number;
  get mayEnd(): boolean;
  allows(trigger: string, given?: readonly string[]): boolean;
  step(trigger: string, why?: string, given?: readonly string[]): Step;
}

/** A machine was asked for a step that its table does not have. */
export class UndeclaredTransitionError extends Error {
  private constructor();
}

/** Reply codes by name. */
export const CODES: Readonly<Record<string, number>>;

/** Reasons of drops by name. */
export const DROPS: Readonly<Record<string, string>>;

