// Two runtimes of the browser in Node.js talk by a real node; their traces go to a folder.

import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { openRuntime } from "../../web/src/index.js";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const WebSocket = require("ws");
const [node, domain, folder] = process.argv.slice(2);
const sockets = [];
const connect = (url, protocol) => {
  const socket = new WebSocket(url, protocol);
  sockets.push(socket);
  return socket;
};

async function open(name) {
  const runtime = await openRuntime({ domain, node, name, trace: true, connect });
  const echo = await runtime.deploy("echo", { request: ({ body }) => body.value });
  return { runtime, echo };
}

const [one, two] = await Promise.all([open("one"), open("two")]);
for (let turn = 0; turn < 3; turn += 1) {
  for (const [from, to] of [[one, two], [two, one]]) await from.echo.request(to.echo.url, { turn });
  sockets.at(-1).terminate();
  await new Promise((next) => setTimeout(next, 50));
}
// What one follows of the other says when that rests, and that another has come in its place.
const statuses = [];
let reported = () => {};
await one.runtime.follow(two.echo.url, (status) => reported(statuses.push(status)));
const former = two.echo.url;
await two.echo.rest();
const again = await two.runtime.deploy("echo", { request: ({ body }) => body.value });
if (again.url !== former) throw new Error(`it has ${again.url} for ${former}`);
while (statuses.join() !== "live,disconnected,live") await new Promise((next) => (reported = next));
if ((await one.echo.request(again.url, 1)) !== 1) throw new Error("no echo");
await one.echo.ask("read", `hyperty://${domain}/nobody`, {});
for (const { runtime } of [one, two]) {
  await runtime.close();
  const file = join(folder, runtime.trace.path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, runtime.trace.text());
}
process.exit(0);
