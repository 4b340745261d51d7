// Answers 503, as the runtime and its hyperties give them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CODES, RETRY_AFTER } from "../../web/src/constants.js";
import { refuse, replyTo } from "../../web/src/message.js";
import { Hyperty, Refusal } from "../../web/src/hyperty.js";

const REQUEST = /** @type {const} */ ({ id: 1, type: "read", from: "hyperty://a.ex/x", to: "hyperty://a.ex/y", body: {} });

test("an answer 503 has a reason and a pause, whoever writes it", () => {
  const now = { code: 503, description: "it cannot be done now", retryAfter: RETRY_AFTER };
  assert.deepEqual(replyTo(REQUEST, 503).body, now);
  assert.deepEqual(replyTo(REQUEST, 503, { description: undefined, retryAfter: null }).body, now);
  assert.deepEqual(refuse(REQUEST, 503, "full").body, { ...now, description: "full" });
  assert.deepEqual(refuse(REQUEST, 503, "full", 7.25).body, { ...now, description: "full", retryAfter: 7.25 });
});

test("no other answer gets a pause", () => {
  for (const code of Object.values(CODES)) {
    if (code !== 503) assert.deepEqual(replyTo(REQUEST, code).body, { code });
  }
});
