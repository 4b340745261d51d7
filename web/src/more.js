/** Entry module for data objects and Workers, which a page loads only if it uses them. */

export { Objects } from "./objects.js";
export { Sandbox } from "./sandbox.js";
export { SyncContext } from "./sync/context.js";
export { SyncManager } from "./sync/manager.js";
