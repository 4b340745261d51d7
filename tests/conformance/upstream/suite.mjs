// The checks of upstream's conformance suite, each by a stub of its own that connects and leaves,
// in our own words: connection, allocation, registration, subscription.

import { Stub, check, say, until } from './runtime.mjs';

const [, , mode, form, url, domain, ...sizes] = process.argv;
const RUNTIME = `runtime://${domain}/1`;
const STUB = `hyperty-runtime://${domain}/protostub/1`;
const NODE = `domain://msg-node.${domain}`;
const REGISTRY = `domain://registry.${domain}`;
const ASKER = `${STUB}/registry/allocation`;
const USER = `user://${domain}/openIdTest10`;

class Peer {
  constructor(runtime) {
    this.stub = new Stub(form, url, runtime);
    this.heard = [];
    this.stub.heard = (message) => this.heard.push(message);
    this.id = 0;
  }

  async ask(type, from, to, body) {
    this.id += 1;
    const id = this.id;
    this.stub.post({ id, type, from, to, body });
    const is = (one) => one.type === 'response' && one.id === id;
    await until(() => this.heard.some(is), `an answer to ${type} ${to}`);
    const [answer] = this.heard.splice(this.heard.findIndex(is), 1);
    check(answer.from === to && answer.to === from, `ends: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  async ok(...asked) {
    const body = await this.ask(...asked);
    check(body.code === 200, JSON.stringify(body));
    return body;
  }
}

async function connected(work = async () => {}, runtime = RUNTIME) {
  const peer = new Peer(runtime);
  await peer.stub.connect();
  await work(peer);
  await peer.stub.disconnect();
}

/** Seven checks: one address, its scheme, freed; a block, freed; a block by key, freed. */
function allocation(scheme, target) {
  const to = `${NODE}/${target}`;
  const key = `${STUB}/${scheme}AllocationKey`;
  let made = [];
  const allocate = (number, more = {}) =>
    connected(async (peer) => {
      const body = { scheme, value: { number, ...more } };
      ({ value: { allocated: made } } = await peer.ok('create', ASKER, to, body));
      check(made.length === number, `${made.length} addresses`);
    });
  const free = (body) => connected((peer) => peer.ok('delete', ASKER, to, body()));
  return {
    [`${scheme}: one address`]: () => allocate(1),
    [`${scheme}: its scheme`]: async () => check(made[0].startsWith(`${scheme}://`), made[0]),
    [`${scheme}: one is freed`]: () => free(() => ({ childrenResources: made })),
    [`${scheme}: a block`]: () => allocate(3),
    [`${scheme}: a block is freed`]: () => free(() => ({ childrenResources: [made] })),
    [`${scheme}: a block by key`]: () => allocate(4, { allocationKey: key }),
    [`${scheme}: it is freed by key`]: () => free(() => ({ resource: key })),
  };
}

let address;
const record = () => ({
  user: USER, url: address, runtime: RUNTIME, status: 'live', expires: 1200, guid: undefined,
  descriptor: `hyperty-catalogue://${domain}/.well-known/hyperty/Test`,
  resources: ['chat'], dataSchemes: ['comm'],
});
const registry = (type, body, from = `${STUB}/registry`) =>
  connected((peer) => peer.ok(type, from, REGISTRY, body));

const registration = {
  'registration: a record': () =>
    connected(async (peer) => {
      const wanted = { scheme: 'hyperty', value: { number: 1 } };
      const to = `${NODE}/address-allocation`;
      ({ value: { allocated: [address] } } = await peer.ok('create', ASKER, to, wanted));
      await peer.ok('create', `${STUB}/registry`, REGISTRY, { value: record() });
    }),
  'registration: read by user': () => registry('read', { resource: USER }),
  'registration: read by address': () => registry('read', { resource: address }),
  'registration: by resource': () =>
    registry('read', { resource: USER, criteria: { resources: ['chat'] } }),
  'registration: by data scheme': () =>
    registry('read', { resource: USER, criteria: { dataSchemes: ['comm'] } }),
  'registration: from a registry with a slash': () =>
    registry('read', { resource: USER }, `${RUNTIME}/registry/`),
  'registration: kept alive': () => registry('update', { resource: address, value: {} }),
  'registration: changed': () =>
    registry('update', { resource: address, value: { resources: ['chat', 'voice'] } }),
  'registration: unregistered': () =>
    registry('update', { resource: address, value: 'disconnected', attribute: 'status' }),
};

let reporter;
let object;
let observer;
const subscription = {
  'subscription: an object': async () => {
    reporter = new Peer(`runtime://${domain}/Reporter`);
    await reporter.stub.connect();
    const from = `hyperty-runtime://${domain}/protostub/Reporter/registry/allocation`;
    const wanted = { scheme: 'connection', value: { number: 1 } };
    const to = `${NODE}/address-allocation`;
    ({ value: { allocated: [object] } } = await reporter.ok('create', from, to, wanted));
  },
  'subscription: with a source': async () => {
    observer = new Peer(`runtime://${domain}/Subscriber`);
    await observer.stub.connect();
    const from = `hyperty-runtime://${domain}/protostub/Subscriber`;
    const resources = [`${object}/changes`, `${object}/children/name1`];
    await observer.ok('subscribe', `${from}/sm`, `${NODE}/sm`, { resources, source: from });
  },
  'subscription: an event': async () => {
    const body = { attribute: 'changedAttribute', value: 'new value' };
    const to = `${object}/changes`;
    reporter.stub.post({ id: 9, type: 'update', from: object, to, body });
    await until(() => observer.heard.length, 'the event');
    const [event] = observer.heard;
    check(event.to === to && event.body.value === 'new value', JSON.stringify(event));
    await observer.stub.disconnect();
    await reporter.stub.disconnect();
  },
};

// What runtime-core and the performance suites write beside: an object and its parts, the names of
// children, a quote behind an address.
const odd = {
  'odd: an object beside its parts': () =>
    connected(async (peer) => {
      const url = `comm://${domain}/${crypto.randomUUID()}`;
      const resources = [`${url}/changes`, `${url}/children/resources`];
      const body = { resources, source: ASKER };
      await peer.ok('subscribe', `${RUNTIME}/sm`, `${NODE}/sm`, body);
      await peer.ok('unsubscribe', `${RUNTIME}/sm`, `${NODE}/sm`, { ...body, resource: url });
      const elsewhere = { ...body, resource: `comm://${domain}/another` };
      const { code, desc } = await peer.ask('unsubscribe', `${RUNTIME}/sm`, `${NODE}/sm`, elsewhere);
      check(code === 400, `${code} ${desc}`);
    }),
  'odd: names of children beside an object': () =>
    connected(async (peer) => {
      const to = `${NODE}/object-address-allocation`;
      const wanted = { scheme: 'comm', value: { number: 1 } };
      const { value: { allocated: [url] } } = await peer.ok('create', ASKER, to, wanted);
      const childrenResources = [['resources']];
      await peer.ok('delete', `${RUNTIME}/sm`, to, { resource: url, childrenResources });
      await peer.ok('delete', `${RUNTIME}/sm`, to, { resource: url, childrenResources: ['resources'] });
    }),
  'odd: a quote behind the sender': () =>
    connected(async (peer) => {
      const to = `${NODE}/hyperty-address-allocation`;
      const wanted = { scheme: 'hyperty', value: { number: 1 } };
      for (let round = 0; round < 30; round += 1) await peer.ok('create', `${ASKER}"`, to, wanted);
    }),
};

const CHECKS = {
  'connection: there and away': () => connected(),
  'connection: again': () => connected(),
  'connection: two at once': () =>
    connected(() => connected(undefined, `runtime://${domain}/2`)),
  ...allocation('hyperty', 'address-allocation'),
  ...allocation('comm', 'address-allocation'),
  ...odd,
  ...registration,
  ...subscription,
};

/** Run all checks; say which failed. */
async function suite() {
  const failed = {};
  for (const [name, work] of Object.entries(CHECKS)) {
    try {
      await work();
    } catch (error) {
      failed[name] = error.message;
    }
  }
  say({ checks: Object.keys(CHECKS).length, failed });
}

/** Leave the node in the middle of everything: this process is killed. */
async function hold() {
  await CHECKS['hyperty: a block by key']();
  await CHECKS['registration: a record']();
  await CHECKS['subscription: an object']();
  await CHECKS['subscription: with a source']();
  const peer = new Peer(RUNTIME);
  await peer.stub.connect();
  await peer.ok('read', `${STUB}/registry`, REGISTRY, { resource: USER });
  say({ held: true });
  setInterval(() => {}, 1000);
}

/** Subscribers with slashes in their names, and two stubs that are called alike. */
async function performance() {
  const [number, messages, size] = sizes.map(Number);
  const payload = 'x'.repeat(10_240);
  await subscription['subscription: an object']();
  const peers = await Promise.all(
    Array.from({ length: number }, async (_, index) => {
      const peer = new Peer(`runtime://${domain}/Subscriber/${index}`);
      await peer.stub.connect();
      const from = `hyperty-runtime://${domain}/protostub/Subscriber`;
      const subscribe = [`${object}/changes`, `${object}/children/name1`];
      const body = { subscribe, source: `${from}${index}` };
      await peer.ok('subscribe', `${from}/${index}/sm`, `${NODE}/sm`, body);
      return peer;
    }),
  );
  const to = `${object}/changes`;
  reporter.stub.post({ id: 9, type: 'update', from: object, to, body: { value: payload } });
  await until(() => peers.every((peer) => peer.heard.length === 1), 'all events');
  await Promise.all(peers.map((peer) => peer.stub.disconnect()));
  await reporter.stub.disconnect();

  const [one, two] = [new Peer(RUNTIME), new Peer(`runtime://${domain}/2`)];
  const ends = [];
  for (const peer of [one, two]) {
    await peer.stub.connect();
    const wanted = { scheme: 'hyperty', value: { number: 1 } };
    const body = await peer.ok('create', ASKER, `${NODE}/hyperty-address-allocation`, wanted);
    ends.push(body.value.allocated[0]);
  }
  for (let id = 1; id <= messages; id += 1) {
    const body = { value: { data: 'x'.repeat(size) + id } };
    one.stub.post({ id, type: 'create', from: ends[0], to: ends[1], body });
  }
  await until(() => two.heard.length === messages, 'all messages');
  check(two.heard.every(({ id }, index) => id === index + 1), 'the order');
  await one.stub.disconnect();
  await two.stub.disconnect();
  say({ done: true, events: peers.length, messages: two.heard.length });
}

await { suite, hold, performance }[mode]();
