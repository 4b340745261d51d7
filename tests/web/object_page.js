// A page that observes an object of a peer, which a node brings.

import { openRuntime } from "../../web/src/index.js";
import "../../web/src/more.js";
import { FakeNode, PEER, settle } from "./fake_node.js";

export const URL = "comm://a.ex/theirs";
export const MINE = "comm://a.ex/mine";
export const SUBSCRIPTION = `${URL}/subscription`;
export const PATHS = "domain://msg-node.a.ex/sm";
export const whole = (version, data, reporter = PEER) => ({ url: URL, version, data, reporter, childrenObjects: { resources: {} } });

/**
 * A page, and a node that answers as a test says: `answers` maps an address, or a type and an
 * address, to a body; false: there is no answer.
 */
export async function opened(answers = {}) {
  const node = new FakeNode();
  const given = { [SUBSCRIPTION]: { code: 200, value: whole(1, { n: 1 }) }, ...answers };
  node.answers = ({ to, type }) => given[`${type} ${to}`] ?? (type === "unsubscribe" ? { code: 200 } : given[to]);
  const opening = openRuntime({ domain: "a.ex", name: "ra", node: "wss://node.a.ex/link", key: null, connect: node.connect, clock: node.clock });
  await settle();
  const runtime = await opening;
  const done = async (promise) => {
    await settle();
    return promise;
  };
  const deployed = (name) => done(runtime.deploy(name, { subscribe() {} }));
  const hyperty = await deployed("observer");
  let id = 100;
  const say = async (message) => {
    node.say({ id: (id += 1), type: "update", from: URL, to: `${URL}/changes`, ...message });
    await settle();
    return id;
  };
  const change = (version, attribute, value, more = {}) => say({ body: { version, attribute, value }, ...more });
  const said = (about) => node.said(about).length;
  return { node, runtime, hyperty, deployed, given, say, change, done, said };
}
