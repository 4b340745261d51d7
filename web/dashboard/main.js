/** The page: login, theme, and which view is open. */

import { Connection } from "./connection.js";
import { el, say } from "./dom.js";
import { Model } from "./model.js";
import { openConformance } from "./conformance.js";
import { openFleet } from "./fleet.js";
import { openMachines } from "./machines.js";
import { openNodes } from "./nodes.js";
import { openRecords } from "./records.js";
import { openRefusals } from "./refusals.js";
import { openRuntime } from "./runtime.js";
import { openTraffic } from "./traffic.js";

const VIEWS = {
  fleet: [openFleet, "Fleet"],
  runtime: [openRuntime, "Runtime"],
  nodes: [openNodes, "Nodes"],
  machines: [openMachines, "Machines"],
  traffic: [openTraffic, "Traffic"],
  refusals: [openRefusals, "Refusals"],
  records: [openRecords, "Records"],
  conformance: [openConformance, "Conformance"],
};
const HIDDEN_FOR = 20000;

const [main, nav, live, liveText, leave, said] = ["main", "views", "live", "live-text", "leave", "said"]
  .map((id) => document.getElementById(id));
const connection = new Connection();

/** Have a screen reader say something when it has time. */
const announce = (text) => say(said, text);

let model = null;
let view = null;
let following = null;
let isFirst = true;

// ---- theme

const theme = document.getElementById("theme");
theme.value = localStorage.getItem("protofly.dashboard.theme") ?? "system";
theme.addEventListener("change", () => {
  localStorage.setItem("protofly.dashboard.theme", theme.value);
  document.documentElement.dataset.theme = theme.value;
});
document.documentElement.dataset.theme = theme.value;

// ---- login

function showLogin(why) {
  stop();
  nav.hidden = true;
  leave.hidden = true;
  report("off", "Not connected");
  const error = el("p", { class: "error", role: "alert", id: "login-error", text: why });
  const input = el("input", {
    type: "password", id: "token", name: "token", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "login-help login-error",
  });
  const button = el("button", { type: "submit", text: "Open the dashboard" });
  const form = el("form", { class: "login card" },
    el("h1", { text: "Dashboard of this node" }),
    el("p", { class: "muted", id: "login-help", text: "Enter the token of the node. It stands in the file that the node was started with, by the option " },
      el("code", { class: "tight", text: "--http-token-file" }), "."),
    el("label", { for: "token", text: "Token" }), input, error, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    connection.keep(input.value.trim());
    await start();
  });
  main.replaceChildren(form);
  document.title = "Sign in · Protofly dashboard";
  input.focus();
}

function showTrouble(why) {
  stop();
  report("off", "Not connected");
  main.replaceChildren(el("section", { class: "card login" }, el("h1", { text: "The dashboard cannot be shown" }),
    el("p", { role: "alert", text: why }),
    el("button", { type: "button", text: "Try again", onclick: start })));
}

leave.addEventListener("click", () => {
  connection.keep("");
  showLogin("");
  announce("Signed out");
});

async function start() {
  try {
    model = new Model(await connection.ask("about"));
  } catch (error) {
    if (error.status === 401) {
      const wasTried = Boolean(connection.token);
      connection.keep("");
      showLogin(wasTried ? error.message : "");
    } else showTrouble(error.message);
    return;
  }
  const { domain, node } = model.about;
  say(document.getElementById("domain"), node ? `${domain} · ${node}` : domain);
  document.getElementById("nodes").hidden = !node;
  nav.hidden = false;
  leave.hidden = !connection.token;
  follow();
  route();
}

// ---- the stream

function report(state, text) {
  live.dataset.state = state;
  say(liveText, text);
}

function follow() {
  following?.abort();
  following = new AbortController();
  const { signal } = following;
  report("wait", "Connecting");
  connection.follow((name, content) => {
    model.take(name, content);
    view?.update?.(name);
  }, (state, why) => {
    report(state === "on" ? "on" : "wait", state === "on" ? "Live" : "Reconnecting");
    announce(state === "on" ? "Live" : `${why} Trying again.`);
  }, signal).catch((error) => {
    if (!signal.aborted) showLogin(error.message);
  });
}

function stop() {
  following?.abort();
  following = null;
  view?.close?.();
  view = null;
}

// A page that nobody sees costs the node nothing.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden) {
    if (model && !following && !nav.hidden) follow();
  } else if (following) {
    hiding = setTimeout(() => {
      following?.abort();
      following = null;
      report("off", "Paused");
    }, HIDDEN_FOR);
  }
});

// ---- views

function route() {
  if (!model || nav.hidden) return;
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const [open, title] = VIEWS[name] ?? VIEWS.fleet;
  const place = VIEWS[name] ? name : "fleet";
  view?.close?.();
  const root = el("div", { class: `view view-${place}` });
  main.replaceChildren(root);
  let argument = "";
  try {
    argument = decodeURIComponent(rest.join("/"));
  } catch {
    // An address that was cut in the middle of a character: there is no such runtime.
  }
  view = open(root, { model, connection, announce, argument });
  view.update?.("whole");
  const heading = root.querySelector("h1");
  if (!isFirst) announce(heading?.textContent ?? title);
  document.title = `${heading?.textContent ?? title} · ${model.about.domain} · Protofly dashboard`;
  for (const link of nav.querySelectorAll("a")) {
    const isHere = link.hash === `#/${place}` || (place === "runtime" && link.hash === "#/fleet");
    if (isHere) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
}

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  isFirst = false;
  route();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

start();
