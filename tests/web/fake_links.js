// Direct links of a runtime whose stubs are a test's: what its peer sends is brought by `bring`.

import { openRuntime } from "../../web/src/index.js";
import { replyTo, stamped } from "../../web/src/message.js";
import { Lists } from "../../web/src/p2p/lists.js";
import { FakeNode, PEER, RUNTIME, settle } from "./fake_node.js";

export const REMOTE = "hyperty-runtime://a.ex/rb";
export const DESCRIPTOR = "hyperty-catalogue://catalogue.a.ex/.well-known/protocolstub/webrtc";
export const RECORD = { url: PEER, runtime: REMOTE, expires: 60, status: "live" };
export const REACHABLE = { ...RECORD, p2pHandler: `${REMOTE}/p2phandler/1`, p2pRequester: DESCRIPTOR };

/** A stub of direct links that does nothing by itself. */
export class FakeStub {
  messages = [];
  isClosed = false;

  constructor(context) {
    Object.assign(this, context, { name: context.url });
  }

  take(message) {
    this.messages.push(message);
    if (message.to === this.url && message.type !== "response") queueMicrotask(() => this.port.post(replyTo(message, 200)));
    return true;
  }

  close() {
    this.isClosed = true;
  }

  /** Report a step of a link. */
  report(value, link) {
    const type = value === "created" ? "create" : "update";
    this.port.publish(type, `${this.url}/status`, { value, resource: REMOTE, ...(link ? { link } : {}) });
  }

  /** What this runtime's registry says to the peer's, or to all that follow it. */
  get registries() {
    return this.messages.filter(({ to }) => to.includes("/registry"));
  }

  /** Bring a message of the peer. */
  bring(message, link = this.url) {
    this.arrived(stamped(message, link), link);
  }

  get orders() {
    return this.messages.filter(({ to, type }) => to === this.url && type === "execute").map(({ body }) => body.method);
  }

  /** What registries say to each other is left out. */
  get carried() {
    return this.messages.filter(({ to }) => to !== this.url && !to.includes("/registry")).map(({ to, type, body }) => [to, type, body.value]);
  }
}

export async function linked(records, hasHandler = false, code = { request: ({ body }) => body.value }) {
  const node = new FakeNode();
  node.answers = ({ to, type, body }) => {
    if (to !== "domain://registry.a.ex" || type !== "read") return undefined;
    return records[body.resource] ? { code: 200, value: records[body.resource] } : { code: 404 };
  };
  const options = { domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, trace: true };
  const opening = openRuntime({ ...options, connect: node.connect, clock: node.clock });
  await settle();
  const runtime = await opening;
  const stubs = [];
  const make = (context) => {
    const stub = new FakeStub(context);
    stubs.push(stub);
    return stub;
  };
  const using = runtime.registry.useLinks({ handler: hasHandler ? make : null, requester: make, descriptor: DESCRIPTOR, Lists });
  await settle();
  await using;
  const deploying = runtime.deploy("echo", code);
  await settle();
  return { node, runtime, stubs, echo: await deploying };
}
