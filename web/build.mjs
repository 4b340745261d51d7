// Makes protofly.js of src/index.js, and protofly-objects.js of src/more.js, which the former loads
// when a page uses data objects or direct links. What both need is in the former only.

import { readFileSync } from "node:fs";
import { basename, relative, resolve } from "node:path";

import { build } from "esbuild";

const COMMON = { bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none" };
const FIRST = "./protofly.js";
const SECOND = "./protofly-objects.js";
const SRC = resolve("src");

/** The second module stays a file of its own. */
const apart = {
  name: "apart",
  setup(building) {
    building.onResolve({ filter: /\/more\.js$/ }, () => ({ path: SECOND, external: true }));
  },
};

const first = await build({
  ...COMMON,
  entryPoints: ["src/index.js"],
  outfile: "protofly.js",
  metafile: true,
  plugins: [apart],
});
// Constants are written where they are used.
const inFirst = new Set(Object.keys(first.metafile.inputs).filter((one) => basename(one) !== "constants.js"));

/** What is in the first module is taken from there. */
const shared = {
  name: "shared",
  setup(building) {
    building.onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
      const file = resolve(resolveDir, path);
      return inFirst.has(relative(".", file)) ? { path: file, namespace: "shared" } : undefined;
    });
    building.onResolve({ filter: /^first$/ }, () => ({ path: FIRST, external: true }));
    building.onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => {
      const text = readFileSync(resolve(SRC, "shared.js"), "utf8");
      const from = `"./${relative(SRC, path)}"`;
      const found = [...text.matchAll(/export \{([^}]*)\} from ("[^"]*")/g)].find((one) => one[2] === from);
      return { contents: `import { shared } from "first"; export const {${found?.[1] ?? ""}} = shared;` };
    });
  },
};

await build({
  ...COMMON,
  entryPoints: ["src/more.js"],
  outfile: "protofly-objects.js",
  plugins: [shared],
});
