// Makes protofly.js of src/index.js, protofly-objects.js of src/more.js, which a page loads when it
// uses data objects or Workers, and protofly-links.js of src/direct.js, which it loads when it uses
// direct links. What several need is in the first of them only: it lends that to each other one as a
// list, since names of exports stay as long as they are.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";

import { build } from "esbuild";
import { minify } from "terser";

import { CODES, DROPS } from "./src/constants.js";

const MODULES = [
  { file: "./protofly.js", entry: "src/index.js" },
  { file: "./protofly-objects.js", entry: "src/more.js" },
  { file: "./protofly-links.js", entry: "src/direct.js" },
];

/** Codes and reasons are written where they are used, as other constants are. */
const inlined = {
  name: "inlined",
  setup(building) {
    building.onLoad({ filter: /\/src\/.*\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replace(/\bCODES\.([A-Z_]+)/g, (_, name) => JSON.stringify(CODES[name]))
        .replace(/\bDROPS\.([A-Z_]+)/g, (_, name) => JSON.stringify(DROPS[name])),
    }));
  },
};

/** Modules that are loaded later stay files of their own. */
const apart = {
  name: "apart",
  setup(building) {
    for (const { file, entry } of MODULES.slice(1))
      building.onResolve({ filter: new RegExp(`/${basename(entry)}$`) }, ({ kind }) =>
        kind === "dynamic-import" ? { path: file, external: true } : undefined);
  },
};

/** Return one module of an entry, and the sources that it is made of. */
async function bundled(entry, plugins) {
  const { metafile, outputFiles } = await build({
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    metafile: true,
    write: false,
    plugins: [...plugins, inlined],
    ...(typeof entry === "string" ? { entryPoints: [entry] } : { stdin: entry }),
  });
  const [{ text }] = outputFiles;
  return { text, sources: Object.keys(metafile.inputs).filter((one) => basename(one) !== "constants.js") };
}

async function write(file, text) {
  // Functions stay where they are: moved to where they are called, they would be made anew each time.
  const { code } = await minify(text, { module: true, ecma: 2020, compress: { reduce_funcs: false } });
  writeFileSync(file, `${code}\n`);
}

const taken = new Set();
for (const module of MODULES) {
  const { sources } = await bundled(module.entry, [apart]);
  module.sources = sources.filter((one) => !taken.has(one));
  for (const one of module.sources) taken.add(one);
}

/** What a module takes of each source of an earlier one. */
function lentBy(lender, borrower) {
  const lent = new Map();
  for (const file of borrower.sources) {
    const text = readFileSync(file, "utf8");
    for (const [, listed, whole, path] of text.matchAll(/^import (?:\{([^}]*)\}|\* as (\w+)) from "([^"]*)"/gm)) {
      const from = join(dirname(file), path);
      const names = listed ?? text.match(new RegExp(`(?<=\\b${whole}\\.)\\w+`, "g"))?.join() ?? "";
      if (!lender.sources.includes(from)) continue;
      lent.set(from, lent.get(from) ?? new Set());
      for (const name of names.split(",").map((one) => one.trim()).filter(Boolean)) lent.get(from).add(name);
    }
  }
  return lent;
}

const nameOf = (module) => `lent${MODULES.indexOf(module)}`;
const listOf = (lent) => [...lent.values()].flatMap((each) => [...each]).join();

/** Sources of earlier modules are taken from these. */
const borrowed = (borrower, earlier) => ({
  name: "borrowed",
  setup(building) {
    building.onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
      const source = relative(".", resolve(resolveDir, path));
      const lender = earlier.find((one) => one.sources.includes(source));
      return lender && { path: lender.file, namespace: "lent" };
    });
    building.onResolve({ filter: /^lender:/ }, ({ path }) => ({ path: path.slice("lender:".length), external: true }));
    building.onLoad({ filter: /.*/, namespace: "lent" }, ({ path }) => {
      const names = listOf(lentBy(earlier.find((one) => one.file === path), borrower));
      return { contents: `import { ${nameOf(borrower)} } from "lender:${path}"; export const [${names}] = ${nameOf(borrower)};` };
    });
  },
});

for (const [place, module] of MODULES.entries()) {
  const exported = [];
  const used = new Map();
  for (const borrower of MODULES.slice(place + 1)) {
    const lent = lentBy(module, borrower);
    for (const [from, names] of lent) used.set(from, new Set([...(used.get(from) ?? []), ...names]));
    exported.push(`export const ${nameOf(borrower)} = [${listOf(lent)}];`);
  }
  const imported = [...used].map(([from, names]) => `import { ${[...names]} } from "./${from}";`);
  const contents = [`export * from "./${module.entry}";`, ...imported, ...exported].join("\n");
  const plugins = [borrowed(module, MODULES.slice(0, place)), apart];
  await write(module.file, (await bundled({ contents, resolveDir: "." }, plugins)).text);
}
