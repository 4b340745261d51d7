/** Transfer of messages by one live direct link (`actors/runtime/p2p/link.py`). */

import { Alarm } from "../clock.js";
import { ACK_DELAY, CODES, CONTROL_BYTES, DROPS, ERROR_WINDOW, FRAME_MESSAGES, HELD_BYTES, MAX_MALFORMED, MAX_MESSAGE_BYTES, ORDER_PAIRS } from "../constants.js";
import { BadMessageError, byteLength } from "../json.js";
import { frames, readLine, stamped, viaOf, writeLine } from "../message.js";
import { readBehind } from "./order.js";
import { TransferCore } from "./transfer.js";

/** @typedef {import("../message.js").Message} Message */

/**
 * @typedef {object} LinkUse
 * @property {string} stub address of the end, stamped into `via`
 * @property {string} actor
 * @property {import("../bus.js").Tools} tools
 * @property {import("../message.js").SenderIdentity} sender
 * @property {(message: Message) => void} arrived
 * @property {(from: string, to: string, link: LiveLink) => object} behind what the messages of a pair follow
 * @property {(line: Record<string, unknown>) => void} announced
 * @property {(isOrderly: boolean, why: string) => void} ended
 */

const MARK = '{"p2p":';

/** One end of a live link: sends and receives messages, acknowledges them, and detects silence. */
export class LiveLink {
  #channel;
  #use;
  #core;
  #alarm;
  /** Lines of messages that wait. @type {string[]} */
  #lines = [];
  /** Pairs whose messages this link has announced. @type {Set<string>} */
  #pairs = new Set();
  #pairBytes = 0;
  #isAckDue = false;
  #isOver = false;
  /** The error of the peer; empty: none. */
  #why = "";
  /** When the last malformed lines came. @type {number[]} */
  #errors = [];

  /**
   * @param {string} name
   * @param {import("./channel.js").Channel} channel
   * @param {LinkUse} use
   */
  constructor(name, channel, use) {
    this.name = name;
    this.#channel = channel;
    this.#use = use;
    this.#core = new TransferCore(use.tools.clock.now());
    this.#alarm = new Alarm(use.tools.clock, () => this.#tick());
    channel.onFrame = (frame) => this.#read(frame);
    channel.onEnd = (why) => this.#end(why);
    this.#schedule();
  }

  get #now() {
    return this.#use.tools.clock.now();
  }

  /**
   * Queue a message to be written; return false if too many messages wait.
   *
   * @param {Message} message
   */
  send(message) {
    const { stub, behind } = this.#use;
    const line = writeLine(stamped(message, stub));
    if (byteLength(line) > MAX_MESSAGE_BYTES) {
      throw new BadMessageError(`larger than ${MAX_MESSAGE_BYTES} bytes`, CODES.TOO_LARGE);
    }
    const pair = `${message.from} ${message.to}`;
    if (!this.#pairs.has(pair)) {
      // A pair that is announced again waits no longer.
      this.#pairBytes += pair.length;
      if (this.#pairs.size >= ORDER_PAIRS || this.#pairBytes > HELD_BYTES) {
        this.#pairs.clear();
        this.#pairBytes = pair.length;
      }
      this.#pairs.add(pair);
      this.#core.announce(behind(message.from, message.to, this));
    }
    if (!this.#core.send(message)) return false;
    this.#lines.push(line);
    this.#flush();
    return true;
  }

  /** @param {object} line what the next messages of a pair follow, in place of the last such line */
  announce(line) {
    this.#core.announce(line);
    this.#flush();
  }

  #flush() {
    if (this.#isOver) return;
    const { stub, actor, tools } = this.#use;
    const lines = this.#core.takeOutput(this.#now).map((one) => {
      if ("line" in one) return JSON.stringify(one.line);
      tools.trace.message(actor, "xmit", stamped(one.message, stub), { stub, link: this.name, seq: one.seq });
      return /** @type {string} */ (this.#lines.shift());
    });
    for (const frame of frames(lines)) this.#channel.send(frame);
    this.#schedule();
  }

  /** @param {string} frame */
  #read(frame) {
    const lines = frame.split("\n", FRAME_MESSAGES + 1);
    if (lines.length > FRAME_MESSAGES) {
      this.#break(DROPS.OVERFLOW, `a frame has more than ${FRAME_MESSAGES} lines`);
      lines.length = 0;
    }
    for (const line of lines) {
      if (this.#core.end || this.#isOver) break;
      if (!line.startsWith(MARK)) this.#readMessage(line);
      else this.#readControl(line);
    }
    if (this.#core.end === "flood") this.#break(DROPS.OVERFLOW, "the peer writes too many control lines");
    if (this.#core.end) return this.#end(this.#why || `the peer ended it: ${this.#core.end}`);
    // An acknowledgement is delayed, to be sent together with the answer.
    if (this.#isAckDue) return;
    this.#isAckDue = true;
    const { clock } = this.#use.tools;
    clock.at(clock.now() + ACK_DELAY, () => {
      this.#isAckDue = false;
      this.#flush();
    });
  }

  /** @param {string} line */
  #readControl(line) {
    if (byteLength(line) > CONTROL_BYTES) {
      return this.#break(DROPS.MALFORMED, `a control line of a P2P link has more than ${CONTROL_BYTES} bytes`);
    }
    try {
      const read = JSON.parse(line);
      if (read.p2p !== "behind") return this.#core.heard(read, this.#now);
      const behind = readBehind(read);
      this.#core.spend(this.#now);
      if (!this.#core.end) this.#use.announced(behind);
    } catch (error) {
      const why = error instanceof BadMessageError ? error.message : "not a control line of a P2P link";
      this.#break(DROPS.MALFORMED, why);
    }
  }

  /**
   * End the link because of a line that the peer wrote.
   *
   * @param {string} drop
   * @param {string} why
   */
  #break(drop, why) {
    this.#use.tools.counters.drop(drop, this.#use.actor);
    this.#core.end ??= "protocol";
    this.#why ||= why;
  }

  /** @param {string} line */
  #readMessage(line) {
    const { stub, actor, tools, sender, arrived } = this.#use;
    const seq = this.#core.received(this.#now);
    let message = readLine(line);
    if ("error" in message) {
      if (!this.#mayErr()) return this.#break(DROPS.MALFORMED, "the peer writes too many malformed messages");
      tools.counters.drop(DROPS.MALFORMED, actor);
      if (message.answer) this.send(message.answer);
      if (!message.replacement) return;
      message = message.replacement;
    }
    if (viaOf(message).includes(stub)) {
      tools.counters.drop(DROPS.LOOP, actor, message);
      return tools.trace.message(actor, "drop", message, { reason: DROPS.LOOP });
    }
    const stampedOne = { ...stamped(message, stub), identity: sender };
    tools.trace.message(actor, "rcv", stampedOne, { stub, link: this.name, seq });
    arrived(stampedOne);
  }

  /** Return whether one more malformed line is accepted. */
  #mayErr() {
    const now = this.#now;
    this.#errors = [...this.#errors.filter((at) => now - at < ERROR_WINDOW), now];
    return this.#errors.length <= MAX_MALFORMED;
  }

  #schedule() {
    this.#alarm.set(this.#isOver ? Infinity : this.#core.deadline);
  }

  #tick() {
    this.#core.timePassed(this.#now);
    if (this.#core.end) return this.#end(`the peer is ${this.#core.end}`);
    this.#flush();
  }

  /** @param {string} why */
  #end(why) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#schedule();
    this.#channel.end(why);
    this.#use.ended(this.#core.end === "bye", why);
  }

  /** Write all waiting messages and the line `bye`, then close the channel. */
  leave() {
    this.#core.sayGoodbye();
    this.#flush();
    this.breakOff();
    this.#channel.leave();
  }

  /** Close the channel at once. */
  breakOff() {
    this.#isOver = true;
    this.#schedule();
  }

  /** Return, in order, the messages that the other end did not acknowledge; callable once. */
  owed() {
    return this.#core.owed();
  }
}
