/** What the page asks the node: single answers, and the stream of frames. The token goes with each. */

const KEPT = "protofly.dashboard.token";
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;

/** The node refused: `status` is that of HTTP, `message` the reason. */
export class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

const SENTENCES = {
  401: "The node did not accept this token. Compare it with the token file of the node and try again.",
  403: "This node has no token, so it shows its dashboard on its own machine only, without a proxy. Open it there, or start the node with --http-token-file.",
  503: "Enough pages watch this node already. Close one of them.",
};

export class Connection {
  constructor() {
    this.token = sessionStorage.getItem(KEPT) ?? "";
  }

  /** Use a token from now on, as long as this tab is open. */
  keep(token) {
    this.token = token;
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  }

  async #fetch(path, signal) {
    const headers = this.token ? { authorization: `Bearer ${this.token}` } : {};
    let answer;
    try {
      answer = await fetch(path, { headers, signal, cache: "no-store", credentials: "omit" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refused(0, "The node does not answer. It may be stopped, or the network is down.");
    }
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, SENTENCES[answer.status] ?? problem.error ?? `The node answered ${answer.status}.`);
  }

  /** Ask for one answer. */
  async ask(path, query = {}) {
    const text = new URLSearchParams(query).toString();
    return (await this.#fetch(`/dashboard/${path}${text && `?${text}`}`)).json();
  }

  /** Ask for a public path, without the token. */
  async read(path) {
    const answer = await fetch(path, { credentials: "omit" });
    if (!answer.ok) throw new Refused(answer.status, `The node answered ${answer.status}.`);
    return answer;
  }

  /**
   * Follow the node until `signal` is aborted; comes back by itself after a lost connection.
   * @param {(name: string, content: any) => void} take is called with each frame
   * @param {(state: "on" | "lost", why?: string) => void} report is called with the state of the stream
   */
  async follow(take, report, signal) {
    let pause = FIRST_PAUSE;
    while (!signal.aborted) {
      try {
        const answer = await this.#fetch("/dashboard/events", signal);
        report("on");
        for await (const [name, data] of events(answer.body)) {
          pause = FIRST_PAUSE;
          if (name !== "end") take(name, JSON.parse(data));
        }
        report("lost", "The node ended the connection.");
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 401 || error.status === 403) throw error;
        report("lost", error.status === undefined ? "The connection was lost." : error.message);
      }
      await new Promise((next) => setTimeout(next, pause));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}

/** Read server-sent events: name and data of each. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      let name = "message";
      const data = [];
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ")) data.push(line.slice(6));
      }
      yield [name, data.join("\n")];
    }
  }
}
