// Makes protofly.js of src/index.js, and protofly-objects.js of src/more.js, which the former loads
// when a page uses data objects or direct links. What both need is in the former only: it lends that
// as a list, since names of exports stay as long as they are.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";

import { build } from "esbuild";
import { minify } from "terser";

import { CODES, DROPS } from "./src/constants.js";

const FIRST = "./protofly.js";
const SECOND = "./protofly-objects.js";

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

/** The second module stays a file of its own. */
const apart = {
  name: "apart",
  setup(building) {
    building.onResolve({ filter: /\/more\.js$/ }, () => ({ path: SECOND, external: true }));
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

const inFirst = new Set((await bundled("src/index.js", [apart])).sources);
const inSecond = (await bundled("src/more.js", [])).sources.filter((one) => !inFirst.has(one));

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

const contents = [
  'export * from "./src/index.js";',
  ...[...lent].map(([from, each]) => `import { ${[...each]} } from "./${from}";`),
  `export const lent = [${names}];`,
].join("\n");
await write(FIRST, (await bundled({ contents, resolveDir: "." }, [apart])).text);

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

await write(SECOND, (await bundled("src/more.js", [borrowed])).text);
