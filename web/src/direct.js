/** The module that a page loads when it uses direct links. */

export { checkIssuers } from "./p2p/issuers.js";
export { linkStubs } from "./p2p/stub.js";
export { Links } from "./routes.js";
