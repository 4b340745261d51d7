/** The status of a Connection object: its negotiation, and pleas (`fsm/p2p/link_end.py`). */

const LATER = /^negotiation-([1-9][0-9]{0,8})(?:-|$)/;

/** @param {string} status */
export const negotiationOf = (status) => Number(LATER.exec(status)?.[1] ?? 1);

/** @param {string} status */
export const isPlea = (status) => status.replace(LATER, "").startsWith("unreachable");

/** @param {number} negotiation */
export const beginning = (negotiation) => (negotiation === 1 ? "" : `negotiation-${negotiation}`);

/**
 * @param {number} negotiation
 * @param {number} count
 */
export const plea = (negotiation, count) =>
  `${negotiation === 1 ? "" : `${beginning(negotiation)}-`}unreachable-${count}`;
