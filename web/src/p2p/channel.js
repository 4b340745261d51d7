/** Send and receive frames on a data channel, with flow control (docs/p2p.md). */

import { CHANNEL_BUFFER, CHANNEL_BUFFER_LOW, CHANNEL_CREDIT, CHANNEL_FRAMES, CHANNEL_MESSAGE, CHANNEL_WINDOW, GOODBYE_TIMEOUT, MAX_FRAME_BYTES } from "../constants.js";
import { byteLength } from "../json.js";

const MORE = 0;
const LAST = 1;
const CREDIT = 2;
const FAREWELL = 3;
const ROUND = 2 ** 32;
const DONE = 1000;
const REFUSED = 1008;
const TOO_LARGE = 1009;
/** Maximum chunks of a frame, since each one takes additional memory; 17 full ones suffice. */
const CHUNKS = 256;

/** Options of the data channel, the same at both ends. */
export const OPTIONS = { negotiated: true, id: 0, ordered: true, protocol: "protofly.v1" };

/**
 * @param {number} kind
 * @param {number} value
 * @param {number} size
 */
function control(kind, value, size) {
  const bytes = new DataView(new ArrayBuffer(1 + size));
  bytes.setUint8(0, kind);
  if (size === 4) bytes.setUint32(1, value);
  else bytes.setUint16(1, value);
  return bytes.buffer;
}

/** One end of an open data channel: chunks of frames, credits, and the close message. */
export class Channel {
  #channel;
  #clock;
  /** @type {(string | Uint8Array<ArrayBuffer>)[]} */
  #waiting = [];
  #sent = 0;
  #credited = 0;
  #received = 0;
  #taken = 0;
  #granted = 0;
  /** @type {Uint8Array[]} */
  #chunks = [];
  #inFrame = 0;
  #isLeaving = false;
  #isOver = false;
  /** @type {((frame: string) => void) | null} */
  #onFrame = null;
  /** Frames not processed yet, for which the peer gets no credit. @type {{frame: string, size: number}[]} */
  #held = [];
  /** Is called once, at the end. @type {(why: string) => void} */
  onEnd = () => {};

  /**
   * @param {RTCDataChannel} channel
   * @param {import("../clock.js").Clock} clock
   */
  constructor(channel, clock) {
    this.#channel = channel;
    this.#clock = clock;
    channel.binaryType = "arraybuffer";
    channel.bufferedAmountLowThreshold = CHANNEL_BUFFER_LOW;
    channel.onbufferedamountlow = () => this.#flush();
    channel.onmessage = ({ data }) => this.#heard(data);
    channel.onclose = () => this.end("the data channel is closed");
    channel.onerror = () => this.end("the data channel has failed");
  }

  /**
   * The function that is called for each frame; null: frames are queued.
   *
   * @param {((frame: string) => void) | null} take
   */
  set onFrame(take) {
    this.#onFrame = take;
    if (take && this.#held.length) queueMicrotask(() => this.#give());
  }

  /** @param {string} frame */
  send(frame) {
    if (byteLength(frame) <= CHANNEL_MESSAGE) this.#waiting.push(frame);
    else {
      const bytes = new TextEncoder().encode(frame);
      const step = CHANNEL_MESSAGE - 1;
      for (let at = 0; at < bytes.length; at += step) {
        const chunk = bytes.subarray(at, at + step);
        const part = new Uint8Array(1 + chunk.length);
        part[0] = at + step < bytes.length ? MORE : LAST;
        part.set(chunk, 1);
        this.#waiting.push(part);
      }
    }
    this.#flush();
  }

  #flush() {
    while (!this.#isOver && this.#waiting.length) {
      const [part] = this.#waiting;
      const size = typeof part === "string" ? byteLength(part) : part.length;
      const hasRoom = this.#sent + size - this.#credited <= CHANNEL_WINDOW;
      if (!hasRoom || this.#channel.bufferedAmount > CHANNEL_BUFFER) return;
      this.#waiting.shift();
      this.#sent += size;
      // Its types do not know that it takes both.
      this.#post(part);
    }
    if (this.#isLeaving && !this.#isOver) this.#post(control(FAREWELL, DONE, 2));
  }

  /** @param {string | Uint8Array<ArrayBuffer> | ArrayBuffer} part */
  #post(part) {
    try {
      this.#channel.send(/** @type {string} */ (part));
    } catch {
      this.end("the data channel is closed");
    }
  }

  /** @param {string | ArrayBuffer} data */
  #heard(data) {
    if (this.#isOver) return;
    if (typeof data === "string") {
      const size = byteLength(data);
      if (size > CHANNEL_MESSAGE || this.#inFrame) return this.#refuse("a text is too long, or within a frame");
      this.#count(size);
      return this.#frame(data, size);
    }
    const bytes = new Uint8Array(data);
    const view = new DataView(data);
    if (!bytes.length || bytes.length > CHANNEL_MESSAGE) return this.#refuse("a message has no bytes, or too many");
    if (bytes[0] === MORE || bytes[0] === LAST) this.#chunk(bytes);
    else if (bytes[0] === CREDIT && bytes.length === 5) this.#credit(view.getUint32(1));
    else if (bytes[0] === FAREWELL && bytes.length === 3) {
      if (!this.#isLeaving) this.#post(control(FAREWELL, DONE, 2));
      this.end(`the peer has left: ${view.getUint16(1)}`);
    } else this.#refuse("a message is none of ours");
  }

  /** @param {Uint8Array} bytes */
  #chunk(bytes) {
    this.#count(bytes.length);
    this.#chunks.push(bytes.subarray(1));
    this.#inFrame += bytes.length;
    const isLarge = this.#inFrame - this.#chunks.length > MAX_FRAME_BYTES || this.#chunks.length > CHUNKS;
    if (isLarge) return this.#refuse("a frame is too large, or in too many chunks", TOO_LARGE);
    if (bytes[0] === MORE) return;
    const whole = new Uint8Array(this.#inFrame - this.#chunks.length);
    let at = 0;
    for (const chunk of this.#chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    const size = this.#inFrame;
    this.#chunks = [];
    this.#inFrame = 0;
    try {
      this.#frame(new TextDecoder("utf-8", { fatal: true }).decode(whole), size);
    } catch {
      this.#refuse("a frame is no text");
    }
  }

  /** @param {number} size */
  #count(size) {
    this.#received += size;
    if (this.#received - this.#granted > CHANNEL_WINDOW) this.#refuse("the peer sends more than it has credit for");
  }

  /**
   * @param {string} frame
   * @param {number} size
   */
  #frame(frame, size) {
    if (this.#isOver) return;
    if (this.#held.length >= CHANNEL_FRAMES) return this.#refuse("too many frames are not taken");
    this.#held.push({ frame, size });
    this.#give();
  }

  #give() {
    while (this.#onFrame && this.#held.length && !this.#isOver) {
      const { frame, size } = /** @type {{frame: string, size: number}} */ (this.#held.shift());
      this.#taken += size;
      this.#onFrame(frame);
      if (this.#taken - this.#granted < CHANNEL_CREDIT || this.#isOver) continue;
      this.#granted = this.#taken;
      this.#post(control(CREDIT, this.#taken % ROUND, 4));
    }
  }

  /** @param {number} taken */
  #credit(taken) {
    const added = (taken - (this.#credited % ROUND) + ROUND) % ROUND;
    if (this.#credited + added > this.#sent) return this.#refuse("the peer grants credit for what was not sent");
    this.#credited += added;
    this.#flush();
  }

  /**
   * @param {string} why
   * @param {number} [code]
   */
  #refuse(why, code = REFUSED) {
    this.#post(control(FAREWELL, code, 2));
    this.end(why);
  }

  /** Send all waiting data and the close message; wait up to a second for that of the peer. */
  leave() {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#flush();
    this.#clock.at(this.#clock.now() + GOODBYE_TIMEOUT, () => this.end("closed by this end"));
  }

  /** @param {string} why */
  end(why) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onEnd(why);
    this.#channel.close();
  }
}
