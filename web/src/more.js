/** What a page loads when it uses data objects or direct links. */

export { Objects } from "./objects.js";
export { checkIssuers } from "./p2p/issuers.js";
export { linkStubs } from "./p2p/stub.js";
export { SyncContext } from "./sync/context.js";
export { SyncManager } from "./sync/manager.js";
