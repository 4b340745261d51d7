/** What is below the runtime: connections that the user of the page may cut. */

const connections = new Set();

/** Have all WebRTC connections of the page noted, so that they can be cut from outside. */
export function watchConnections() {
  const Original = window.RTCPeerConnection;
  if (!Original) return false;
  window.RTCPeerConnection = class extends Original {
    constructor(...terms) {
      super(...terms);
      connections.add(this);
    }

    close() {
      connections.delete(this);
      super.close();
    }
  };
  return true;
}

const printOf = (description) => /a=fingerprint:\S+ (\S+)/.exec(description?.sdp ?? "")?.[1];

/** The fingerprint of the certificate of this page, by which others know its connections. */
export function ownFingerprint() {
  for (const one of connections) {
    const print = printOf(one.localDescription);
    if (print) return print;
  }
  return null;
}

/**
 * Close the connections to a peer underneath its link, as a network would.
 * @param {(fingerprint: string | undefined) => boolean} isMeant tells by the peer's fingerprint
 */
export function cutConnections(isMeant) {
  for (const one of [...connections]) if (isMeant(printOf(one.remoteDescription))) one.close();
}

/** The way to the node, which can be taken away and given back. */
export class NodeWire {
  isCut = false;
  #sockets = new Set();

  /** Dial, as `connect` of `openRuntime`. */
  connect = (url, protocol) => {
    if (this.isCut) {
      const dead = { bufferedAmount: 0, send() {}, close() {}, onopen: null, onmessage: null, onclose: null, onerror: null };
      setTimeout(() => dead.onclose?.(new CloseEvent("close", { code: 1006 })));
      return dead;
    }
    const socket = new WebSocket(url, protocol);
    this.#sockets.add(socket);
    socket.addEventListener("close", () => this.#sockets.delete(socket));
    return socket;
  };

  cut() {
    this.isCut = true;
    for (const socket of this.#sockets) socket.close();
  }

  mend() {
    this.isCut = false;
  }
}
