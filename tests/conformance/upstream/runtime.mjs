// Upstream's runtime as far as its wire goes: its message bus, stubs, registry and syncher,
// with their habits. Written from what is documented of its messages; no code of upstream's.
//
// An answer finds its request by `to` and id, letter by letter; any other message finds its
// listener by `to`, letter by letter. What finds neither is a failure of the run.

const PATIENCE = 15_000;

/** One connection to a node, in the plain form or in the form with a session. */
class Stub {
  constructor(form, url, runtime) {
    Object.assign(this, { form, url, runtime, own: `${runtime}/protostub/1`, heard: () => {} });
    this.sessionId = 0;
  }

  async connect() {
    const plain = `${this.url}?runtimeURL=${encodeURIComponent(this.runtime)}`;
    this.socket = new WebSocket(this.form === 'plain' ? plain : this.url);
    this.gone = new Promise((resolve) => this.socket.addEventListener('close', resolve));
    await new Promise((resolve, reject) => {
      this.socket.addEventListener('open', resolve);
      this.socket.addEventListener('error', () => reject(new Error('the node is not reached')));
    });
    this.socket.addEventListener('message', (event) => this.take(JSON.parse(event.data)));
    if (this.form === 'plain') return;
    const { code, runtimeToken, desc } = await this.control('open', this.runtime);
    if (code !== 200 || !runtimeToken) throw new Error(`open: ${code} ${desc}`);
    this.own = `${this.runtime}/${runtimeToken}`;
  }

  control(type, from) {
    this.sessionId += 1;
    this.send({ id: this.sessionId, type, from, to: 'mn:/session' });
    return new Promise((resolve) => {
      this.answered = { id: this.sessionId, resolve };
    });
  }

  take(message) {
    if (message.from === 'mn:/session') {
      if (message.id === this.answered.id) this.answered.resolve(message.body);
    } else if (message.body?.via !== this.own) {
      this.heard(message);
    }
  }

  send(message) {
    this.socket.send(JSON.stringify(message));
  }

  post(message) {
    this.send({ ...message, body: { ...message.body, via: this.own } });
  }

  async disconnect() {
    // The session form is closed by the node, without an answer; the plain form by the peer.
    if (this.form === 'plain') this.socket.close();
    else this.control('close', this.own);
    await this.gone;
  }
}

/** Ids, pending answers and listeners of one runtime. */
class Bus {
  constructor(stub) {
    Object.assign(this, { stub, id: 0, pending: new Map(), listeners: new Map(), lost: [] });
    stub.heard = (message) => this.take(message);
  }

  listen(address, listener) {
    this.listeners.set(address, listener);
  }

  take(message) {
    const key = message.type === 'response' ? `${message.to}#${message.id}` : '';
    if (this.pending.has(key)) {
      const answered = this.pending.get(key);
      if (message.body.code >= 200) this.pending.delete(key);
      answered(message);
    } else if (this.listeners.has(message.to)) this.listeners.get(message.to)(message);
    else this.lost.push(message);
  }

  post(message, answered) {
    this.id += 1;
    if (answered) this.pending.set(`${message.from}#${this.id}`, answered);
    this.stub.post({ id: this.id, ...message });
  }

  ask(message) {
    return new Promise((resolve, reject) => {
      const what = `${message.type} ${message.from} -> ${message.to}`;
      const late = setTimeout(() => reject(new Error(`no answer: ${what}`)), PATIENCE);
      this.post(message, (reply) => {
        if (reply.body.code < 200) return;
        clearTimeout(late);
        resolve(reply.body);
      });
    });
  }

  async must(message) {
    const body = await this.ask(message);
    if (body.code !== 200) {
      throw new Error(`${message.type} to ${message.to}: ${JSON.stringify(body)}`);
    }
    return body;
  }

  answer(request, body) {
    const { id, from, to } = request;
    this.stub.post({ id, type: 'response', from: to, to: from, body });
  }
}

const MADE_OF = ['url', 'created', 'reporter', 'runtime', 'schema', 'name'];
const SCHEMA = (domain) =>
  `hyperty-catalogue://catalogue.${domain}/.well-known/dataschema/Communication`;

/** A data object as both ends of upstream's syncher have it. */
class DataObject {
  constructor(metadata) {
    const missing = MADE_OF.filter((name) => !metadata[name]);
    if (missing.length) throw new Error(`a data object without ${missing}`);
    Object.assign(this, { metadata, data: { ...metadata.data }, version: metadata.version });
    this.children = [];
  }

  get url() {
    return this.metadata.url;
  }

  /**
   * A change that is not newer is left out; nobody asks for what is between. A path leads through
   * what is there; in a list elements are spliced at its last segment.
   */
  change({ version, attribute, attributeType, operation, ...body }) {
    if (this.version + 1 > version) throw new Error(`version ${version} after ${this.version}`);
    this.version = version;
    const way = attribute.split('.');
    const last = way.pop();
    const holder = way.reduce((here, name) => here[name], this.data);
    if (attributeType === 'array' && operation === 'add') {
      Array.prototype.splice.apply(holder, [last, 0].concat(body.value));
    } else if (attributeType === 'array' && operation === 'remove') holder.splice(last, body.value);
    else if ('value' in body || attributeType === 'array') holder[last] = body.value;
    else delete holder[last];
  }
}

class Runtime {
  constructor(form, url, domain, name) {
    this.domain = domain;
    this.url = `runtime://${domain}/${name}`;
    this.registry = `${this.url}/registry/`;
    this.discovery = `${this.url}/discovery/`;
    this.sm = `${this.url}/sm`;
    this.node = `domain://msg-node.${domain}`;
    this.records = `domain://registry.${domain}`;
    this.stub = new Stub(form, url, this.url);
    this.bus = new Bus(this.stub);
  }

  async start() {
    await this.stub.connect();
    return this;
  }

  async stop() {
    await this.stub.disconnect();
    if (this.bus.lost.length) throw new Error(`lost: ${JSON.stringify(this.bus.lost)}`);
  }

  /** Make an address, let messages to it come here, and register it. */
  async deploy(user) {
    const url = `hyperty://${this.domain}/${crypto.randomUUID()}`;
    const source = `${this.url}/address-allocation`;
    const body = { resources: [url], source };
    await this.bus.must({ type: 'subscribe', from: source, to: `${this.node}/sm`, body });
    const value = {
      user, url, runtime: this.url, descriptor: `hyperty-catalogue://${this.domain}/Chat`,
      expires: 3600, resources: ['chat'], dataSchemes: ['comm'], status: 'live',
    };
    await this.register(value);
    return url;
  }

  register(value) {
    const body = { value, policy: 'policy' };
    return this.bus.must({ type: 'create', from: this.registry, to: this.records, body });
  }

  /** The record stays, disconnected; the resource is a path and no address. */
  unregister(hyperty) {
    const body = { resource: `/hyperty/${hyperty}`, value: 'disconnected', attribute: 'status' };
    return this.bus.must({ type: 'update', from: this.registry, to: this.records, body });
  }

  discover(resource) {
    const body = { resource };
    return this.bus.ask({ type: 'read', from: this.discovery, to: this.records, body });
  }

  route(resources, source, type = 'subscribe') {
    const body = { resources, source };
    return this.bus.must({ type, from: this.sm, to: `${this.node}/sm`, body });
  }

  /** Report a new data object: it is registered before the node has heard of its address. */
  async report(hyperty, data) {
    const url = `comm://${this.domain}/${crypto.randomUUID()}`;
    const metadata = {
      url, reporter: hyperty, runtime: this.url, schema: SCHEMA(this.domain), name: 'room',
      created: new Date().toISOString(), resources: ['chat'], data, version: 0,
    };
    const { created, data: _, version: __, ...record } = metadata;
    await this.register({
      ...record, startingTime: created, expires: 3600, dataSchemes: ['comm'], status: 'live',
    });
    const object = Object.assign(new DataObject(metadata), { hyperty, observers: [] });
    this.bus.listen(`${url}/subscription`, (message) => this.asked(object, message));
    this.bus.listen(url, (message) => {
      if (message.type === 'read') this.show(object, message);
    });
    this.listenToChildren(object);
    await this.route([url, `${url}/subscription`], hyperty);
    await this.route([`${url}/children/`], hyperty);
    return object;
  }

  asked(object, message) {
    const observer = message.body.subscriber;
    if (!observer) throw new Error(`no subscriber: ${JSON.stringify(message)}`);
    object.observers = object.observers.filter((one) => one !== observer);
    if (message.type !== 'subscribe') return this.bus.answer(message, { code: 200 });
    object.observers.push(observer);
    return this.show(object, message);
  }

  show(object, message) {
    const { data, version, metadata } = object;
    const value = { ...metadata, data, version };
    this.bus.answer(message, { code: 200, schema: metadata.schema, value });
  }

  /** What is written into the value is published, as upstream's watcher of the value sees it. */
  set(object, attribute, value) {
    object.data[attribute] = value;
    this.publish(object, { attribute, value });
  }

  publish(object, change) {
    const { url, hyperty } = object;
    object.version += 1;
    const lastModified = new Date().toISOString();
    const body = { version: object.version, source: hyperty, ...change, lastModified };
    this.bus.post({ type: 'update', from: url, to: `${url}/changes`, body });
  }

  /** Return an array of the value; what JavaScript does to it, one by one, is published. */
  watched(object, path) {
    const published = (name, change) =>
      this.publish(object, { attribute: `${path}.${String(name)}`, attributeType: 'array', ...change });
    return new Proxy(path.split('.').reduce((here, name) => here[name], object.data), {
      set: (target, name, value) => {
        const isNew = target[name] === undefined;
        target[name] = value;
        if (name !== 'length') published(name, isNew ? { value, operation: 'add' } : { value });
        return true;
      },
      deleteProperty: (target, name) => {
        delete target[name];
        published(name, { operation: 'remove' });
        return true;
      },
    });
  }

  async observe(hyperty, url) {
    const parts = [`${url}/changes`, `${url}/children/`];
    await this.route(parts, hyperty);
    const request = {
      type: 'subscribe', from: this.sm, to: `${url}/subscription`,
      body: { identity: {}, subscriber: hyperty, mutual: false },
    };
    const { value } = await this.bus.must(request);
    const object = Object.assign(new DataObject(value), { hyperty });
    this.bus.listen(`${url}/changes`, (message) => {
      if (message.type === 'update') object.change(message.body);
      object.onChange?.();
    });
    this.listenToChildren(object);
    return object;
  }

  listenToChildren(object) {
    this.bus.listen(`${object.url}/children/`, ({ from, body }) => {
      if (from !== object.hyperty) object.children.push(body.value);
    });
  }

  addChild(object, value) {
    const body = { resource: `${object.hyperty}#1`, value };
    this.bus.post({ type: 'create', from: object.hyperty, to: `${object.url}/children/`, body });
  }

  async leave(object) {
    const { url, hyperty } = object;
    const body = { subscriber: hyperty, resource: url };
    await this.bus.must({ type: 'unsubscribe', from: this.sm, to: `${url}/subscription`, body });
    await this.route([`${url}/changes`, `${url}/children/`], hyperty, 'unsubscribe');
  }
}

const until = async (holds, what) => {
  for (let waited = 0; !holds(); waited += 5) {
    if (waited > PATIENCE) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
const check = (is, what) => {
  if (!is) throw new Error(what);
};
const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);

/** Two of upstream's runtimes: discovery, an object, its changes and its children. */
async function pair(form, url, domain) {
  const alice = await new Runtime(form, url, domain, 'alice').start();
  const bob = await new Runtime(form, url, domain, 'bob').start();
  const reporter = await alice.deploy(`user://${domain}/alice`);
  const observer = await bob.deploy(`user://${domain}/bob`);
  const found = await bob.discover(`user://${domain}/alice`);
  check(JSON.stringify(found).includes(reporter), `not found: ${JSON.stringify(found)}`);
  const mine = await alice.report(reporter, { n: 0 });
  const copy = await bob.observe(observer, mine.url);
  for (const n of [1, 2, 3]) alice.set(mine, 'n', n);
  await until(() => copy.data.n === 3, 'the third change');
  bob.addChild(copy, 'hi');
  await until(() => mine.children.length === 1, 'a child at the reporter');
  alice.addChild(mine, 'hello');
  await until(() => copy.children.length === 1, 'a child at the observer');
  await bob.leave(copy);
  check(mine.observers.length === 0, 'the observer is still there');
  await alice.unregister(reporter);
  const { code } = await bob.discover(`user://${domain}/alice`);
  check(code === 408, `an unregistered hyperty is read with ${code}`);
  await bob.stop();
  await alice.stop();
  say({ done: true });
}

/** An observer of an object that somebody else reports, until its `n` is 3. */
async function observe(form, url, domain, object) {
  const bob = await new Runtime(form, url, domain, 'bob').start();
  const copy = await bob.observe(await bob.deploy(`user://${domain}/bob`), object);
  say({ observes: copy.metadata });
  await until(() => copy.data.n === 3, 'the third change');
  await bob.leave(copy);
  await bob.stop();
  say({ done: true, data: copy.data, version: copy.version });
}

/** A reporter of an object that somebody else observes. */
async function report(form, url, domain) {
  const alice = await new Runtime(form, url, domain, 'alice').start();
  const mine = await alice.report(await alice.deploy(`user://${domain}/alice`), { n: 0 });
  say({ object: mine.url });
  await until(() => mine.observers.length === 1, 'an observer');
  for (const n of [1, 2, 3]) alice.set(mine, 'n', n);
  await until(() => mine.observers.length === 0, 'the end of the observer');
  await alice.stop();
  say({ done: true });
}

/** A reporter whose lists change in all ways of JavaScript, and of older runtimes of upstream. */
async function lists(form, url, domain) {
  const alice = await new Runtime(form, url, domain, 'alice').start();
  const value = { list: [1], deep: [{ names: ['a', 'b'] }], pairs: [[1], [2]], n: 0 };
  const mine = await alice.report(await alice.deploy(`user://${domain}/alice`), value);
  say({ object: mine.url });
  await until(() => mine.observers.length === 1, 'an observer');
  const list = alice.watched(mine, 'list');
  const names = alice.watched(mine, 'deep.0.names');
  const steps = [
    () => list.push(2), () => list.unshift(0), () => list.splice(1, 0, 7, 8), () => list.pop(),
    () => list.shift(), () => list.splice(1, 1), () => names.push('c'), () => names.splice(0, 1),
    () => list.push(null), () => list.push({ inner: [1] }), () => alice.set(mine, 'n', null),
    // A list in a list: what observers are to make of it, only the object itself says.
    () => alice.watched(mine, 'pairs').push([3]), () => alice.watched(mine, 'pairs.0').push(9),
    // A hole, and what comes behind the end.
    () => { delete list[0]; }, () => { list[9] = 'far'; },
    // Older runtimes splice several elements at once, and say how many are removed.
    () => {
      mine.data.list.splice(1, 2);
      alice.publish(mine, { attribute: 'list.1', attributeType: 'array', operation: 'remove', value: 2 });
    },
  ];
  const lines = process.stdin[Symbol.asyncIterator]();
  for (const step of steps) {
    step();
    const { data, version } = JSON.parse(JSON.stringify({ data: mine.data, version: mine.version }));
    say({ data, version: version + 1 });
    if ((await lines.next()).done) throw new Error('the other end has ended');
  }
  process.stdin.destroy();
  say({ last: true });
  await until(() => mine.observers.length === 0, 'the end of the observer');
  await alice.stop();
  say({ done: true });
}

/** An observer of lists that somebody else changes, until its `n` is 3. */
async function follow(form, url, domain, object) {
  const bob = await new Runtime(form, url, domain, 'bob').start();
  const copy = await bob.observe(await bob.deploy(`user://${domain}/bob`), object);
  copy.onChange = () => say({ data: copy.data, version: copy.version });
  say({ observes: true });
  await until(() => copy.data.n === 3, 'the last change');
  await bob.leave(copy);
  await bob.stop();
  say({ done: true });
}

export { Runtime, Stub, check, say, until };

const MODES = { pair, observe, report, lists, follow };
const [, main, mode, ...words] = process.argv;
if (main.endsWith('/runtime.mjs')) await MODES[mode](...words);
