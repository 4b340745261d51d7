// Makes protofly.js of src/index.js, and protofly-objects.js of src/more.js, which the former loads
// when a page uses data objects or direct links. What both need is in the former only: it lends that
// as a list, since names of exports stay as long as they are.

import { readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";

import { build } from "esbuild";

import { CODES, DROPS } from "./src/constants.js";

/** Codes are written where they are used, as constants are. */
const inlined = {
  name: "inlined",
  setup(building) {
    building.onLoad({ filter: /\/src\/.*\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replace(/\bCODES\.([A-Z_]+)/g, (_, name) => CODES[name])
        .replace(/\bDROPS\.([A-Z_]+)/g, (_, name) => JSON.stringify(DROPS[name])),
    }));
  },
};

const COMMON = { bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", plugins: [inlined] };
const FIRST = "./protofly.js";
const SECOND = "./protofly-objects.js";

/** The second module stays a file of its own. */
const apart = {
  name: "apart",
  setup(building) {
    building.onResolve({ filter: /\/more\.js$/ }, () => ({ path: SECOND, external: true }));
  },
};

/** The sources that an entry leads to. Constants are written where they are used. */
async function sourcesOf(entry, plugins = []) {
  const { metafile } = await build({ ...COMMON, entryPoints: [entry], metafile: true, write: false, plugins });
  return new Set(Object.keys(metafile.inputs).filter((one) => basename(one) !== "constants.js"));
}

const inFirst = await sourcesOf("src/index.js", [apart]);
const inSecond = [...(await sourcesOf("src/more.js"))].filter((one) => !inFirst.has(one));

/** What the second module takes of each source of the first one. */
const lent = new Map();
for (const file of inSecond) {
  for (const [, names, path] of readFileSync(file, "utf8").matchAll(/^import \{([^}]*)\} from "([^"]*)"/gm)) {
    const from = join(dirname(file), path);
    if (!inFirst.has(from)) continue;
    lent.set(from, lent.get(from) ?? new Set());
    for (const name of names.split(",").map((one) => one.trim()).filter(Boolean)) lent.get(from).add(name);
  }
}
const names = [...lent.values()].flatMap((each) => [...each]);

await build({
  ...COMMON,
  stdin: {
    contents: [
      'export * from "./src/index.js";',
      ...[...lent].map(([from, each]) => `import { ${[...each]} } from "./${from}";`),
      `/** For the second module alone. */ export const lent = [${names}];`,
    ].join("\n"),
    resolveDir: ".",
  },
  outfile: "protofly.js",
  plugins: [apart, inlined],
});

/** What is in the first module is taken from there. */
const borrowed = {
  name: "borrowed",
  setup(building) {
    building.onResolve({ filter: /^\./ }, ({ path, resolveDir }) =>
      inFirst.has(relative(".", resolve(resolveDir, path))) ? { path: "lent", namespace: "lent" } : undefined);
    building.onResolve({ filter: /^first$/ }, () => ({ path: FIRST, external: true }));
    building.onLoad({ filter: /.*/, namespace: "lent" }, () => ({
      contents: `import { lent } from "first"; export const [${names}] = lent;`,
    }));
  },
};

await build({ ...COMMON, entryPoints: ["src/more.js"], outfile: "protofly-objects.js", plugins: [borrowed, inlined] });
