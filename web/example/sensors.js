// A dashboard of sensors: each is a data object, which the page observes and draws.
import { openRuntime } from "../protofly.js";

const KEPT = 60;
const [WIDTH, HEIGHT] = [240, 48];
const [state, sensors] = ["state", "sensors"].map((id) => document.getElementById(id));
const { node, domain, ...objects } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** Add an element, and return it. */
function add(parent, name, text = "") {
  const element = parent.appendChild(document.createElement(name));
  element.textContent = text;
  return element;
}

/** Return the points of a line through some values, in a box of WIDTH and HEIGHT. */
function pointsOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const scale = HEIGHT / (high - low || 1);
  return values.map((value, at) => `${(at * WIDTH) / (KEPT - 1)},${HEIGHT - (value - low) * scale}`).join(" ");
}

/** Show a sensor, and each of its values from now on, until it is gone. */
async function show(hyperty, name, url) {
  const box = add(sensors, "section");
  add(box, "h2", name);
  const reading = add(box, "p", "...");
  const picture = box.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  picture.setAttribute("viewBox", `-2 -2 ${WIDTH + 4} ${HEIGHT + 4}`);
  picture.setAttribute("role", "img");
  const line = picture.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
  const values = [];
  const copy = await hyperty.observe(url);
  const draw = () => {
    const { value, unit } = copy.value;
    values.push(value);
    if (values.length > KEPT) values.shift();
    reading.textContent = `${value.toFixed(1)} ${unit}`;
    line.setAttribute("points", pointsOf(values));
    picture.setAttribute("aria-label", `the last ${values.length} values of ${name}`);
  };
  draw();
  copy.on("change", draw);
  copy.on("end", () => (reading.textContent += " (gone)"));
}

try {
  const runtime = await openRuntime({ node, domain });
  addEventListener("pagehide", () => void runtime.close());
  const dashboard = await runtime.deploy("dashboard", {});
  await Promise.all(Object.entries(objects).map(([name, url]) => show(dashboard, name, url)));
  state.textContent = `Observed as ${runtime.url}.`;
} catch (error) {
  state.textContent = `Not open: ${error.message}`;
}
