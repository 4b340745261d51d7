// What a state forbids, the state decides: a changed table changes what a page does.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MACHINES } from "../../web/src/machines.js";
import { opened, URL } from "./object_page.js";

/** Let a trigger of a machine lead elsewhere, until the test is over. */
function leading(t, machine, trigger, target) {
  const rows = MACHINES[machine].rows.filter((row) => row[1] === trigger);
  const before = rows.map((row) => row[2]);
  rows.forEach((row) => (row[2] = target));
  t.after(() => rows.forEach((row, at) => (row[2] = before[at])));
}

for (const [target, n] of [["live", 2], ["stale", 1]]) {
  test(`a copy that is ${target} once it is read has n = ${n}`, async (t) => {
    leading(t, "observer_copy", "snapshot", target);
    const { hyperty, done, change } = await opened();
    const copy = await done(hyperty.observe(URL));
    await change(2, "n", 2);
    assert.deepEqual(copy.value, { n });
  });
}
