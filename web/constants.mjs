// Keeps of src/constants.js what pages name: `python -m specs constants` writes all limits of the protocol.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const FILE = "src/constants.js";

const sources = ["src", "dashboard"].flatMap((folder) =>
  readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`));
const text = sources.filter((name) => name.endsWith(".js") && name !== FILE).map((name) => readFileSync(name, "utf8")).join();
const named = new Set(text.match(/\b[A-Z][A-Z0-9_]+\b/g));
const lines = readFileSync(FILE, "utf8").split("\n");
const isKept = (line) => !line.startsWith("export const ") || named.has(line.split(" ")[2]);
writeFileSync(FILE, lines.filter(isKept).join("\n"));
