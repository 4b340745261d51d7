/** Main module of Protofly in a browser, for pages and for the Workers that they start. */

import { SANDBOX, serve } from "./worker.js";

export { AddressError } from "./address.js";
export { CODES, DROPS } from "./constants.js";
export { Refusal } from "./hyperty.js";
export { BadMessageError } from "./json.js";
export { openKey, RuntimeKey } from "./keys.js";
export { ABSENT, Entity, UndeclaredTransitionError } from "./machine.js";
export { MACHINES } from "./machines.js";
export { RefusedError } from "./registry.js";
export { openRuntime, Runtime } from "./runtime.js";
export { SandboxError } from "./worker.js";

const { name } = /** @type {{name?: string}} */ (globalThis);
if ("WorkerGlobalScope" in globalThis && name === SANDBOX) serve();
