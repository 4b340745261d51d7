"""Code for a Worker that means harm: each function tells what it got."""

ATTACKS = {
    "fetch": "return typeof fetch",
    "fetch of a frame's leftovers": "return typeof self.constructor.prototype.fetch",
    "XMLHttpRequest": "return typeof XMLHttpRequest",
    "WebSocket": "return typeof WebSocket",
    "EventSource": "return typeof EventSource",
    "WebTransport": "return typeof WebTransport",
    "importScripts": "return typeof importScripts",
    "a Worker": "return typeof Worker",
    "a channel to others": "return typeof BroadcastChannel",
    "a database": "return typeof indexedDB",
    "a cache": "return typeof caches",
    "the navigator": "return typeof navigator",
    "the port": "return typeof postMessage",
    "fetch once more": "delete self.fetch; return typeof self.fetch",
    "fetch defined anew": "try { Object.defineProperty(self, 'fetch', { value: 1 }); } catch {}"
    " return typeof fetch === 'function' ? 'function' : 'undefined'",
}
"""Each answers `undefined` if the Worker does not have it."""

HOSTILE = (
    "export default class { constructor(hyperty) { this.hyperty = hyperty; }\n"
    "async request({ body: { value: [attack, ...rest] } }) {"
    " return ATTACKS[attack].apply(this, rest); } }\n"
    "const ATTACKS = {\n"
    + "".join(f"  {name!r}() {{ {code} }},\n" for name, code in ATTACKS.items())
    + """
  async "import"(url) {
    try { await import(url); return "loaded"; } catch (error) { return `refused: ${error}`; }
  },
  async "eval"() { try { return (0, eval)("1 + 1"); } catch (error) { return "refused"; } },
  async "forge"(to, from) {
    this.hyperty.url = from;
    return (await this.hyperty.ask("create", to, { value: 1 })).body.code;
  },
  async "say"(from, type, to, body) {
    this.hyperty.url = from;
    return (await this.hyperty.ask(type, to, body)).body.code;
  },
  async "report"(from, own) {
    this.hyperty.url = from;
    const { url } = await this.hyperty.report("comm", { n: 0 });
    this.hyperty.url = own;
    return [url, (await this.hyperty.ask("read", url, {})).body.value.reporter];
  },
  async "observe"(from, url) {
    this.hyperty.url = from;
    try { return (await this.hyperty.observe(url)).value; } catch (error) { return error.code; }
  },
  async "flood"(to) {
    const asked = Array.from({ length: 3000 }, () => this.hyperty.ask("read", to, {}));
    const codes = (await Promise.all(asked)).map(({ body }) => body.code);
    return [...new Set(codes)];
  },
  "loop"() { for (;;); },
  async "steal"(...texts) {
    // What handles a message is asked for its event, and that for the port.
    let stolen = null;
    const { get } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, "data");
    Object.defineProperty(MessageEvent.prototype, "data", {
      get() { stolen ??= this.currentTarget ?? this.target; return get.call(this); },
    });
    for (let turn = 0; !stolen && turn < 200; turn += 1) {
      await new Promise((next) => setTimeout(next, 20));
    }
    for (const text of texts) {
      const word = /^do (.*)/.exec(text)?.[1];
      // A page sends no text that is too long; the Worker makes it itself.
      const lie = { do: "post", text: text.replace("LONG", "1".repeat(20_000)) };
      stolen.postMessage(text.startsWith("{") ? lie : word ? { do: word } : text);
    }
    return String(stolen);
  },
  "huge"() { return "x".repeat(20_000_000); },
  "circle"() { const one = {}; one.one = one; return one; },
};
"""
)
