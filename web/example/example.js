import { openRuntime, Refusal } from "../protofly.js";

const [opening, asking, state, answers] = ["opening", "asking", "state", "answers"].map((id) =>
  document.getElementById(id),
);

opening.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { node, domain, token } = Object.fromEntries(new FormData(opening));
  try {
    const login = token ? { token } : {};
    const runtime = await openRuntime({ node, domain, ...login, trace: true });
    const double = await runtime.deploy("double", new URL("double.js", import.meta.url));
    const asker = await runtime.deploy("asker", {});
    opening.hidden = true;
    asking.hidden = false;
    asking.to.value = double.url;
    state.textContent = `Open as ${runtime.url}; ${double.url} doubles numbers.`;
    asking.addEventListener("submit", (asked) => ask(asked, asker));
    document.getElementById("download").addEventListener("click", () => runtime.trace.download());
    addEventListener("pagehide", () => void runtime.close());
  } catch (error) {
    state.textContent = `Not open: ${error.message}`;
  }
});

async function ask(event, asker) {
  event.preventDefault();
  const line = answers.appendChild(document.createElement("li"));
  const { to, number } = Object.fromEntries(new FormData(asking));
  try {
    line.textContent = `${number}: ${JSON.stringify(await asker.request(to, Number(number)))}`;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    line.textContent = `${number}: refused, ${error.code} ${error.reason}`;
  }
}
