// A node on the other end of a fake socket, with a clock that the test turns.

export const DOMAIN = "a.ex";
export const RUNTIME = `hyperty-runtime://${DOMAIN}/ra`;
export const STUB = `${RUNTIME}/protostub/1`;
export const SESSION = `domain://msg-node.${DOMAIN}/session`;
export const PEER = `hyperty://${DOMAIN}/peer`;

/** Let everything happen that waits for nothing but its turn. */
export const settle = () =>
  new Promise((done) => {
    let turns = 40;
    // One promise for all turns: the runner of tests keeps a record of each.
    const turn = () => ((turns -= 1) ? setImmediate(turn) : done());
    setImmediate(turn);
  });

export class FakeClock {
  #now = 1000;
  #timers = new Set();

  now = () => this.#now;

  at = (moment, act) => {
    if (moment === Infinity) return () => {};
    const timer = { moment, act };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /**
   * Turn the clock; what is due happens in its order.
   *
   * @param {number} seconds
   * @param {() => Promise<void>} [rest] waits until all that is under way is done
   */
  async turn(seconds, rest = settle) {
    const end = this.#now + seconds;
    for (;;) {
      await rest();
      const due = [...this.#timers].filter(({ moment }) => moment <= end);
      const first = due.sort((one, other) => one.moment - other.moment)[0];
      if (!first) break;
      this.#timers.delete(first);
      this.#now = Math.max(this.#now, first.moment);
      first.act();
    }
    this.#now = end;
    await rest();
  }
}

export class FakeSocket {
  bufferedAmount = 0;
  isOpen = false;
  closedBy = null;
  onopen = null;
  onmessage = null;
  onclose = null;
  onerror = null;
  #node;

  constructor(node) {
    this.#node = node;
  }

  send(frame) {
    this.#node.frames.push(frame);
    for (const line of frame.split("\n")) this.#node.heard(JSON.parse(line), this);
  }

  close() {
    this.closedBy ??= "runtime";
  }
}

/** Answers as a node does, unless `answers` says otherwise. */
export class FakeNode {
  clock = new FakeClock();
  sockets = [];
  frames = [];
  messages = [];
  allocated = 0;
  /** Answers to session controls: a function from the message to code and body, or null. */
  control = () => ({ code: 200, value: { sessionToken: `token-${this.sockets.length}` } });
  /** Answers to other requests of the runtime; undefined: the usual one, false: none. */
  answers = () => undefined;
  accepts = true;
  /** Addresses that are allocated next. */
  addresses = [];

  constructor(domain = DOMAIN, name = "ra") {
    this.domain = domain;
    this.runtime = `hyperty-runtime://${domain}/${name}`;
    this.session = `domain://msg-node.${domain}/session`;
    this.stub = `${this.runtime}/protostub/1`;
  }

  connect = () => {
    const socket = new FakeSocket(this);
    this.sockets.push(socket);
    queueMicrotask(() => {
      if (!this.accepts) return socket.onclose?.({ code: 1006, reason: "" });
      socket.isOpen = true;
      socket.onopen?.();
    });
    return socket;
  };

  get socket() {
    return this.sockets.at(-1);
  }

  heard(message, socket) {
    this.messages.push(message);
    const answer = this.#answer(message);
    if (answer) queueMicrotask(() => this.say(answer, socket));
  }

  #answer(message) {
    if (message.type === "response") return null;
    const said = message.to === this.session && message.from === this.stub
      ? this.control(message)
      : this.answers(message) ?? this.#usual(message);
    return said && reply(message, said);
  }

  #usual(message) {
    if (message.to === `domain://msg-node.${this.domain}/address-allocation` && message.type === "create") {
      this.allocated += 1;
      const address = this.addresses.shift() ?? `hyperty://${this.domain}/own-${this.allocated}`;
      return { code: 200, value: { allocated: [address] } };
    }
    return message.to.startsWith("domain://") ? { code: 200 } : null;
  }

  /** Send a message, or any text. */
  say(message, socket = this.socket) {
    socket.onmessage?.({ data: typeof message === "object" && "to" in message ? JSON.stringify(message) : message });
  }

  /** Break the link. */
  cut(reason = "cut") {
    this.socket.onclose?.({ code: 1006, reason });
  }

  /** What the runtime has said about something, since the beginning. */
  said(about) {
    return this.messages.filter((one) => Object.entries(about).every(([key, value]) => one[key] === value));
  }

  get controls() {
    return this.messages.filter(({ to, from }) => to === this.session && from === this.stub).map(({ body }) => body);
  }
}

export const reply = (request, body) => ({
  id: request.id,
  type: "response",
  from: request.to,
  to: request.from,
  body,
});

export const request = (to, value, more = {}) => ({
  id: 7,
  type: "create",
  from: PEER,
  to,
  body: { value },
  ...more,
});
