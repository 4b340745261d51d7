// Data objects, as their reporter in the page writes them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ReportedObject } from "../../web/src/objects.js";

const URL = "comm://a.ex/1";

function reported() {
  const asked = [];
  const answered = { id: 1, type: "response", from: "x", to: "y", body: { code: 200, version: 2 } };
  const objects = { askManager: async (...what) => (asked.push(what), answered) };
  const host = { url: "hyperty://a.ex/1", runtime: "runtime://a.ex/ra", clock: { now: () => 0, at: () => () => {} } };
  const created = { schema: "hyperty-catalogue://catalogue.a.ex/.well-known/dataschema/Communication", data: { a: {} } };
  return { asked, object: new ReportedObject(objects, host, URL, created) };
}

test("a path with an empty part is refused by each call, and nothing is sent", async () => {
  const { asked, object } = reported();
  for (const path of ["", ".", "a.", ".a", "a..b"]) {
    for (const call of [() => object.set(path, 1), () => object.remove(path), () => object.add(path, 1), () => object.discard(path, 1)]) {
      await assert.rejects(call(), { name: "Refusal", code: 400, reason: "a path has no empty parts" });
    }
  }
  assert.deepEqual([asked, object.value], [[], { a: {} }]);
  assert.equal(await object.set("a.b", 1), 2);
  assert.deepEqual(object.value, { a: { b: 1 } });
});
