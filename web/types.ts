// Checked by `npm run check`: the module has what its published types say.

import type * as sources from "./src/index.js";
import type * as published from "./protofly.js";

type Names = keyof typeof published;
declare const made: typeof sources;
export const names: Record<Names, unknown> = made;
export const extra: Record<keyof typeof sources, unknown> = {} as Record<Names, unknown>;

export const open: typeof published.openRuntime = (options) =>
  made.openRuntime(options) as unknown as Promise<published.Runtime>;
export const runtime = (one: sources.Runtime): Omit<published.Runtime, "deploy" | "hyperties" | "key"> =>
  one;
export const deployed = (one: sources.Runtime["hyperties"][number]): published.Deployed => one;
export const options = (one: published.RuntimeOptions): Parameters<typeof sources.openRuntime>[0] => one;
