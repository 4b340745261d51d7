/** The module that a page loads when it uses data objects or Workers. */

export { Objects } from "./objects.js";
export { Sandbox } from "./sandbox.js";
export { SyncContext } from "./sync/context.js";
export { SyncManager } from "./sync/manager.js";
