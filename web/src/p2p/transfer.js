/** Numbering and acknowledgement of the messages of a live link (`fsm/p2p/transfer.py`). */

import { CONTROL_BURST, CONTROL_RATE, FRAME_MESSAGES, LINK_WINDOW, PING_PERIOD, PONG_TIMEOUT, STUB_QUEUE } from "../constants.js";
import { TokenBucket } from "../limits.js";

/** @typedef {import("../message.js").Message} Message */
/** What goes out: a message, or a line about the link. @typedef {{message: Message, seq: number} | {line: object}} Out */

/** State machine, without I/O, for the messages and acknowledgements at one end of a live link. */
export class TransferCore {
  /** @type {{seq: number, message: Message}[]} */
  #unacknowledged = [];
  /** @type {({message: Message} | {line: object})[]} */
  #waiting = [];
  /** @type {{p2p: string}[]} */
  #controls = [];
  #sent = 0;
  #received = 0;
  #acknowledged = 0;
  #heard;
  /** @type {number | null} */
  #pinged = null;
  /** @type {number | null} */
  #owedSince = null;
  #saysBye = false;
  #pace = new TokenBucket(CONTROL_RATE, CONTROL_BURST);
  /** Why nothing more may be done with the link; null: it is alive.
   * @type {"bye" | "silent" | "protocol" | "flood" | null} */
  end = null;

  /** @param {number} now */
  constructor(now) {
    this.#heard = now;
  }

  /**
   * @param {Message} message
   * @returns {boolean} false: too many wait
   */
  send(message) {
    if (this.#waiting.length >= STUB_QUEUE) return false;
    this.#waiting.push({ message });
    return true;
  }

  /** @param {object} line what the messages after it follow */
  announce(line) {
    if (this.#waiting.length < STUB_QUEUE) this.#waiting.push({ line });
  }

  /** Queue the line `bye`, to be written after all other output. */
  sayGoodbye() {
    this.#saysBye = true;
  }

  /**
   * Return the output to write now: messages first, then lines about the link.
   *
   * @param {number} now
   * @returns {Out[]}
   */
  takeOutput(now) {
    /** @type {Out[]} */
    const written = [];
    let room = FRAME_MESSAGES;
    while (this.#waiting.length && this.#unacknowledged.length < LINK_WINDOW && room > 0) {
      const next = /** @type {{message: Message} | {line: object}} */ (this.#waiting.shift());
      if ("line" in next) written.push(next);
      else {
        this.#sent += 1;
        room -= 1;
        const numbered = { seq: this.#sent, message: next.message };
        this.#unacknowledged.push(numbered);
        written.push(numbered);
      }
    }
    if (this.#unacknowledged.length) this.#owedSince ??= now;
    if (this.#received > this.#acknowledged) {
      this.#acknowledged = this.#received;
      written.push({ line: { p2p: "ack", seq: this.#received } });
    }
    for (const line of this.#controls.splice(0)) written.push({ line });
    if (this.#saysBye && !this.#waiting.length) {
      this.#saysBye = false;
      written.push({ line: { p2p: "bye" } });
    }
    return written;
  }

  /**
   * Count a line of the peer that is, or should be, a message; return its number.
   *
   * @param {number} now
   */
  received(now) {
    this.#hear(now);
    this.#received += 1;
    return this.#received;
  }

  /** @param {number} now */
  #hear(now) {
    this.#heard = now;
    this.#pinged = null;
  }

  /**
   * Count a line about the link that acknowledges nothing; too many end it.
   *
   * @param {number} now
   */
  spend(now) {
    if (!this.#pace.trySpend(now)) this.end ??= "flood";
  }

  /**
   * Process a line about the link, which may set `end`.
   *
   * @param {Record<string, unknown>} line
   * @param {number} now
   */
  heard(line, now) {
    this.#hear(now);
    const { p2p, seq } = line;
    const [owed] = this.#unacknowledged;
    if (p2p !== "ack" || !owed || Number(seq) < owed.seq) this.spend(now);
    if (p2p === "ack" && Number.isInteger(seq)) this.#acknowledge(Number(seq), now);
    else if (p2p === "ping") {
      // One answer does for all pings that were not answered yet.
      if (!this.#controls.some((one) => one.p2p === "pong")) this.#controls.push({ p2p: "pong" });
    } else if (p2p === "bye") this.end ??= "bye";
    else if (p2p !== "pong") this.end ??= "protocol";
  }

  /**
   * @param {number} seq
   * @param {number} now
   */
  #acknowledge(seq, now) {
    if (seq > this.#sent) {
      this.end = "protocol";
      return;
    }
    while (this.#unacknowledged.length && this.#unacknowledged[0].seq <= seq) {
      this.#unacknowledged.shift();
      this.#owedSince = this.#unacknowledged.length ? now : null;
    }
  }

  /** When `timePassed` is due. */
  get deadline() {
    if (this.end !== null) return Infinity;
    const silentAt = this.#owedSince === null ? Infinity : this.#owedSince + PONG_TIMEOUT;
    const at = this.#pinged === null ? this.#heard + PING_PERIOD : this.#pinged + PONG_TIMEOUT;
    return Math.min(at, silentAt);
  }

  /** @param {number} now */
  timePassed(now) {
    if (now < this.deadline) return;
    const isOwed = this.#owedSince !== null && now >= this.#owedSince + PONG_TIMEOUT;
    if (this.#pinged !== null || isOwed) this.end = "silent";
    else {
      this.#pinged = now;
      this.#controls.push({ p2p: "ping" });
    }
  }

  /** Remove and return, in order, the messages that are unacknowledged or still waiting. */
  owed() {
    const waiting = this.#waiting.flatMap((one) => ("message" in one ? [one.message] : []));
    const owed = [...this.#unacknowledged.map(({ message }) => message), ...waiting];
    this.#unacknowledged = [];
    this.#waiting = [];
    return owed;
  }
}
