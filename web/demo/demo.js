/** The page of the demonstration: chat, to-do list, participants, and the links between them. */

import { Picture } from "../dashboard/picture.js";
import { badge, clock, el, empty, say } from "../dashboard/dom.js";
import { openRuntime, Refusal } from "../protofly.js";
import { MACHINES } from "../src/machines.js";
import { Links, Player, sentence } from "./links.js";
import { cutConnections, NodeWire, ownFingerprint, watchConnections } from "./wires.js";

const GREETING = 3000;
const SHOWN_STEPS = 60;
const FIRST = ["Amber", "Brisk", "Clever", "Dapper", "Eager", "Gentle", "Merry", "Nimble", "Quiet", "Sunny"];
const SECOND = ["Badger", "Falcon", "Heron", "Lynx", "Marten", "Otter", "Plover", "Robin", "Swift", "Wren"];
const LINK = "p2p_connection";

const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));
const given = new URLSearchParams(location.hash.slice(1));
const canLink = watchConnections();
const wire = new NodeWire();
const links = new Links();

let runtime = null;
let me = null;
let chosen = null;
let player = null;
let people = [];
/** What greetings have shown of each participant, by the address of its hyperty. */
const met = new Map();

// ---- join

const oneOf = (words) => words[Math.floor(Math.random() * words.length)];

function welcome() {
  page.joining.hidden = false;
  if (!given.get("node") || !given.get("robot")) {
    for (const one of page.joining.querySelectorAll("label, input, button")) one.remove();
    say(page["join-error"], "Open this page by the address that “make demo ARGS=--web” prints.");
    return;
  }
  page.name.value = `${oneOf(FIRST)} ${oneOf(SECOND)}`;
  page.name.select();
  page.joining.addEventListener("submit", (event) => {
    event.preventDefault();
    void join(page.name.value);
  });
}

async function join(name) {
  const button = page.joining.querySelector("button");
  button.disabled = true;
  say(page["join-error"], "");
  try {
    if (!runtime) await open();
    const { chat, todo } = await ask({ name });
    const [talk, list] = await Promise.all([me.observe(chat), me.observe(todo)]);
    page.joining.hidden = true;
    page.stage.hidden = page.online.hidden = false;
    follow(talk, showChat);
    follow(list, showTodo);
    page.text.focus();
    await draw();
    greetForEver();
  } catch (error) {
    say(page["join-error"], `You cannot join: ${error.message}`);
  }
  button.disabled = false;
}

async function open() {
  const robot = given.get("robot");
  runtime = await openRuntime({
    domain: new URL(robot.replace(/^[^:]+/, "http")).host,
    node: given.get("node"),
    connect: wire.connect,
    p2p: canLink,
  });
  runtime.trace.listen(heard);
  addEventListener("pagehide", () => void runtime.close());
  setInterval(showNode, 500);
  showNode();
  me = await runtime.deploy("participant", { request: () => ({ fingerprint: ownFingerprint() }) });
}

const ask = (value) => me.request(given.get("robot"), value);

/** Show the value of an object now and after each change. */
function follow(copy, show) {
  show(copy.value);
  copy.on("change", () => show(copy.value));
  copy.on("end", () => note("The robot has left. Start the demonstration again."));
}

// ---- chat and list

const nameOf = (url) => people.find((one) => one.url === url)?.name;

/** Keep elements of a list in step with values, each by its id. */
function keep(list, values, make, update) {
  const there = new Map([...list.children].map((one) => [one.dataset.id, one]));
  values.forEach((value, place) => {
    const id = String(value.id);
    let element = there.get(id);
    there.delete(id);
    if (!element) {
      element = make(value);
      element.dataset.id = id;
    }
    update?.(element, value);
    if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
  });
  for (const element of there.values()) element.remove();
}

function showChat({ lines, people: now }) {
  const { talk } = page;
  const isAtEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 40;
  keep(page.lines, lines, (line) => {
    const who = line.by === me.url ? "own" : line.by === given.get("robot") ? "robot" : "";
    return el("li", { class: `line ${who}` }, el("span", { class: "line-name", text: line.name }), el("span", { text: line.text }));
  });
  if (isAtEnd) talk.scrollTop = talk.scrollHeight;
  people = now;
  for (const url of met.keys()) if (!nameOf(url)) met.delete(url);
  showPeople();
  if (people.some((one) => !met.has(one.url) && one.url !== me.url)) void greet();
}

function showTodo({ items }) {
  page["no-items"].hidden = items.length > 0;
  keep(page.items, items, makeItem, (element, { done, what }) => {
    const box = element.querySelector("input");
    box.checked = done;
    element.querySelector(".what").classList.toggle("done", done);
    say(element.querySelector(".what"), what);
  });
}

function makeItem({ id, what, by }) {
  const box = el("input", { type: "checkbox", onchange: () => request({ id, done: box.checked }, page["todo-error"]) });
  const label = el("label", {}, box, el("span", {}, el("span", { class: "what", text: what }), el("span", { class: "by", text: by })));
  const remove = () => {
    page.what.focus();
    void request({ drop: id }, page["todo-error"]);
  };
  return el("li", {}, label, el("button", { type: "button", class: "quiet", "aria-label": `Remove ${what}`, text: "×", onclick: remove }));
}

/** Ask the robot for a change; say why if it was refused. */
async function request(value, place) {
  try {
    await ask(value);
    say(place, "");
    return true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(place, `Not done: ${error.reason || error.code}`);
    return false;
  }
}

function onEntry(form, field, place, make) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value;
    if (!text.trim()) return;
    field.value = "";
    const isDone = await request(make(text), place);
    if (!isDone && !field.value) field.value = text;
  });
}

onEntry(page.saying, page.text, page["say-error"], (text) => ({ text }));
onEntry(page.adding, page.what, page["todo-error"], (what) => ({ what }));

// ---- participants

const isLive = (remote) => runtime.p2p.some((one) => one.runtime === remote && one.isLive);

const SET_UP = ["created", "in-progress", "yielding"];

/** What the way to a participant is called, and its tone. */
function way(remote) {
  if (isLive(remote)) return ["direct link", "good"];
  return SET_UP.includes(links.state(remote)) ? ["setting up", "open"] : ["by the node", "calm"];
}

function showPeople() {
  const rows = people.map((one) => ({ ...one, id: one.url }));
  keep(page.folk, rows, ({ url }) => (url === me.url ? el("li", {}, own()) : el("li", {}, other(url))), (element, one) => {
    const [name, time, tag] = ["person-name", "person-time", "badge"].map((part) => element.querySelector(`.${part}`));
    say(name, one.name);
    if (one.url === me.url) return;
    const [text, tone] = way(one.runtime);
    say(tag, text);
    tag.dataset.tone = tone;
    const delay = met.get(one.url)?.time;
    say(time, delay === undefined ? "" : `${delay < 10 ? delay.toFixed(1) : Math.round(delay)} ms`);
    element.firstChild.setAttribute("aria-pressed", String(one.url === chosen));
  });
  page.alone.hidden = people.length > 2;
  if (!nameOf(chosen)) choose(people.find((one) => one.url !== me.url)?.url ?? null);
  showLink();
}

const own = () => el("div", { class: "person" }, el("span", { class: "person-name" }), el("span", { class: "person-time", text: "you" }));

const other = (url) => el("button", { type: "button", class: "person", onclick: () => choose(url) },
  el("span", { class: "person-name" }), el("span", { class: "person-time" }), el("span", { class: "badge" }));

function choose(url) {
  if (url === chosen) return;
  chosen = url;
  showPeople();
}

/** Greet all others: it sets up their links, and measures the way. */
async function greet() {
  await Promise.all(people.filter((one) => one.url !== me.url).map(async ({ url }) => {
    const known = met.get(url) ?? {};
    if (known.isAsked) return;
    met.set(url, { ...known, isAsked: true });
    const begun = performance.now();
    let heardOf = { time: undefined };
    try {
      const answer = await me.request(url, null);
      heardOf = { time: performance.now() - begun, fingerprint: answer?.fingerprint ?? known.fingerprint };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    if (met.has(url)) met.set(url, { ...known, ...heardOf, isAsked: false });
  }));
  showPeople();
}

function greetForEver() {
  setInterval(() => void greet(), GREETING);
}

// ---- links

async function draw() {
  const states = [...new Set(MACHINES[LINK].rows.map(([, , entered]) => entered))].map((name) => ({ name }));
  try {
    const answer = await fetch(`../dashboard/machines/${LINK}.svg`);
    const picture = new Picture(await answer.text(), { name: LINK, states });
    page.drawing.replaceChildren(picture.element);
    picture.measure();
    player = new Player(picture, links, center);
  } catch {
    page.drawing.replaceChildren(empty("The drawing is not there", "The node does not serve it."));
  }
  showLink();
}

function showLink() {
  const one = people.find(({ url }) => url === chosen);
  page.cut.disabled = !one || !isLive(one.runtime);
  say(page["link-title"], one ? `Link to ${one.name}` : "Link");
  const state = one && links.state(one.runtime);
  if (page["link-state"].textContent !== (state ?? "")) page["link-state"].replaceChildren(...(state ? [badge(state)] : []));
  say(page["link-way"], wayInWords(one));
  player?.show(one?.runtime ?? null);
}

function wayInWords(one) {
  if (!canLink) return "This browser has no WebRTC: messages go by the node.";
  if (!one) return "Choose a participant.";
  if (isLive(one.runtime)) return "Messages go directly, encrypted from end to end.";
  if (SET_UP.includes(links.state(one.runtime))) return "Messages go by the node until the link is live.";
  if (links.state(one.runtime)) return "Messages go by the node. The next one sets the link up again.";
  return "Messages go by the node; no link has been set up.";
}

/** Scroll the drawing, where it is wider than its place, to a state. */
function center(state) {
  const node = page.drawing.querySelector(`#${LINK}__${state.replaceAll("-", "_")}`);
  if (!node) return;
  const [box, frame] = [node.getBoundingClientRect(), page.drawing.getBoundingClientRect()];
  page.drawing.scrollLeft += box.x + box.width / 2 - frame.x - frame.width / 2;
}

page.cut.addEventListener("click", () => {
  const known = new Set([...met.values()].map((one) => one.fingerprint).filter(Boolean));
  const wanted = met.get(chosen)?.fingerprint;
  note(`You cut the link to ${nameOf(chosen)}.`);
  // The robot does not say its own: it is who is left.
  cutConnections((print) => (wanted ? print === wanted : !known.has(print)));
  setTimeout(() => void greet(), 0);
});

page.online.addEventListener("click", () => {
  if (wire.isCut) wire.mend();
  else wire.cut();
  note(wire.isCut ? "You go offline: only live links carry messages." : "You go online.");
  say(page.online, wire.isCut ? "Go online" : "Go offline");
  showNode();
});

function showNode() {
  const isOn = runtime.state === "live";
  page.live.dataset.state = isOn ? "on" : "wait";
  say(page["live-text"], isOn ? "Online" : wire.isCut ? "Offline" : "Connecting");
}

// ---- what happens

function heard(step) {
  if (step.machine === "stub_connection") {
    const said = { live: "The node is reached.", disconnected: "The connection to the node is lost." }[step.new];
    if (said) note(said);
    showNode();
  }
  if (step.machine !== LINK) return;
  const remote = links.take(step);
  const name = people.find((one) => one.runtime === remote)?.name ?? remote.split("/").at(-1);
  note(sentence(step, name), step.why);
  showPeople();
}

function note(text, why) {
  const line = el("li", {}, el("time", { text: clock(Date.now() / 1000) }),
    el("span", { class: "news-text" }, text, why ? el("span", { class: "muted", text: ` (${why})` }) : null));
  page.steps.prepend(line);
  while (page.steps.childElementCount > SHOWN_STEPS) page.steps.lastElementChild.remove();
}

welcome();
