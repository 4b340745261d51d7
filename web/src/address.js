/** Read and build addresses, `scheme://domain/path`, as `specs/addresses/address.py` does. */

import { MAX_ADDRESS } from "./constants.js";

const RUNTIME = "hyperty-runtime";
const SCHEME = /^[a-z][a-z0-9+.-]*$/;
const DOMAIN = /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/;
const SEGMENT = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@#%-]+|[a-z][a-z0-9+.-]*:)$/;
const SERVICES = ["msg-node.", "registry.", "idm.", "qos.", "catalogue."];

/** The error for a text that is no address. */
export class AddressError extends Error {
  /**
   * @param {string} text
   * @param {string} why
   */
  constructor(text, why) {
    super(`${JSON.stringify(text.slice(0, 80))} is no address: ${why}`);
    this.name = "AddressError";
  }
}

/**
 * Split the text of an address, canonical or with accepted aliases, into its parts.
 *
 * @param {string} text
 * @returns {{scheme: string, domain: string, path: string[]}}
 */
export function parse(text) {
  if (text.length > MAX_ADDRESS) throw new AddressError(text, `longer than ${MAX_ADDRESS} characters`);
  // eslint-disable-next-line no-control-regex
  if (!/^[\x00-\x7f]*$/.test(text)) throw new AddressError(text, "has characters beyond ASCII");
  const at = text.indexOf("://");
  const scheme = (at < 0 ? text : text.slice(0, at)).toLowerCase();
  if (at < 0 || !SCHEME.test(scheme)) {
    throw new AddressError(text, "no scheme such as hyperty:// in front");
  }
  const rest = text.slice(at + 3);
  const [host, ...path] = (rest.endsWith("/") ? rest.slice(0, -1) : rest).split("/");
  const domain = host.toLowerCase();
  if (!DOMAIN.test(domain) || domain.includes("..")) {
    throw new AddressError(text, "no plain domain name behind ://");
  }
  for (const segment of path) {
    if (!SEGMENT.test(segment) || segment === "." || segment === "..") {
      throw new AddressError(text, `path segment ${JSON.stringify(segment)} is empty or odd`);
    }
  }
  return { scheme: scheme === "runtime" ? RUNTIME : scheme, domain, path };
}

/**
 * @param {{scheme: string, domain: string, path: string[]}} url
 * @returns {string}
 */
export const write = (url) => [`${url.scheme}://${url.domain}`, ...url.path].join("/");

/**
 * Return the canonical text of an address.
 *
 * @param {string} text
 */
export const canonical = (text) => write(parse(text));

/** @param {string} address canonical */
export const schemeOf = (address) => address.slice(0, address.indexOf("://"));

/** @param {string} address canonical */
export const hostOf = (address) => address.slice(address.indexOf("://") + 3).split("/", 1)[0];

/**
 * Return whether messages to an address must go to a message node, never to a peer.
 *
 * @param {string} address canonical
 */
export function isBackend(address) {
  const scheme = schemeOf(address);
  return scheme === "domain" || scheme === "global" || scheme.startsWith("domain-");
}

/**
 * Return the domain that serves an address.
 *
 * @param {string} address canonical
 */
export function domainOf(address) {
  const host = hostOf(address);
  const service = isBackend(address) && SERVICES.find((prefix) => host.startsWith(prefix));
  return service ? host.slice(service.length) : host;
}

/**
 * @param {string} address canonical
 * @param {string} root canonical
 */
export const isBelow = (address, root) => address === root || address.startsWith(`${root}/`);

/** @param {string} address */
export const lastSegment = (address) => address.slice(address.lastIndexOf("/") + 1);

/** @param {string} address */
export const isInbox = (address) => address.startsWith("hyperty://") && address.endsWith("/events");

/** @param {string} hyperty */
export const inboxOf = (hyperty) => (isInbox(hyperty) ? hyperty : `${hyperty}/events`);

/** @param {string} stub */
export const statusOf = (stub) => `${stub}/status`;

/** @param {string} url */
export const registrationOf = (url) => `${url}/registration`;

/**
 * Return the address of the runtime that the address of a component belongs to.
 *
 * @param {string} address canonical
 */
export const runtimeOf = (address) => address.split("/").slice(0, 4).join("/");

/**
 * @param {string} domain
 * @param {string} name
 */
export function runtimeAddress(domain, name) {
  const { domain: host, path } = parse(`domain://${domain}`);
  if (path.length) throw new AddressError(domain, "it is no domain name such as a.example");
  const url = parse(`${RUNTIME}://${host}/${name}`);
  if (url.path.length !== 1 || url.path[0] !== name) {
    throw new AddressError(name, "it is no name of a runtime such as alice");
  }
  return write(url);
}

/** @param {string} domain */
export const nodeOf = (domain) => `domain://msg-node.${domain}`;

/** @param {string} domain */
export const subscriptionManager = (domain) => `${nodeOf(domain)}/sm`;

/** @param {string} domain */
export const allocationOf = (domain) => `${nodeOf(domain)}/address-allocation`;

/** @param {string} domain */
export const sessionManager = (domain) => `${nodeOf(domain)}/session`;

/** @param {string} domain */
export const registryOf = (domain) => `domain://registry.${domain}`;
