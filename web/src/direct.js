/** Entry module for the code of direct links, which a page loads only if it uses them. */

export { checkIssuers } from "./p2p/issuers.js";
export { linkStubs } from "./p2p/stub.js";
export { Links } from "./routes.js";
