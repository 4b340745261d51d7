// What the Python side makes of many inputs, the browser runtime makes of them, too.
// GOLDEN names the file that tests/web/golden.py has made.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { AddressError, canonical, domainOf, isBackend } from "../../web/src/address.js";
import { LinkTable } from "../../web/src/links.js";
import { Entity, UndeclaredTransitionError } from "../../web/src/machine.js";
import {
  instanceId,
  isEvent,
  isRequest,
  normalAddress,
  readLine,
} from "../../web/src/message.js";
import { Followed, Followers } from "../../web/src/p2p/changes.js";
import { StubClient } from "../../web/src/session.js";
import { digest } from "../../web/src/trace.js";

const golden = JSON.parse(readFileSync(process.env.GOLDEN, "utf8"));
const plain = (value) => JSON.parse(JSON.stringify(value));

test(`${golden.addresses.length} addresses`, () => {
  for (const one of golden.addresses) {
    if (one.canonical === null) {
      assert.throws(() => canonical(one.text), AddressError, JSON.stringify(one.text));
      continue;
    }
    assert.equal(canonical(one.text), one.canonical);
    assert.equal(normalAddress(one.text), one.normal);
    assert.equal(domainOf(one.canonical), one.domain);
    assert.equal(isBackend(one.canonical), one.isBackend);
  }
});

test(`${golden.lines.length} lines`, () => {
  for (const one of golden.lines) {
    const read = readLine(one.text);
    if ("code" in one) {
      assert.ok("error" in read, one.text.slice(0, 500));
      assert.equal(read.error.code, one.code, one.text.slice(0, 500));
      const answer = read.answer && plain(read.answer);
      if (answer) delete answer.body.description;
      assert.deepEqual(answer, one.answer, one.text.slice(0, 500));
      continue;
    }
    assert.ok(!("error" in read), `${one.text.slice(0, 500)}: ${read.error}`);
    assert.deepEqual(plain(read), plain(one.message), one.text.slice(0, 500));
    assert.equal(instanceId(read), one.instance);
    assert.equal(digest(read), one.digest, one.text.slice(0, 500));
    assert.equal(isEvent(read), one.isEvent);
    assert.equal(isRequest(read), one.isRequest);
  }
});

test(`${golden.walks.length} walks through machines`, () => {
  for (const { machine, steps } of golden.walks) {
    const entity = new Entity(machine, "one");
    for (const step of steps) {
      assert.equal(entity.allows(step.trigger, step.given), !step.isRefused);
      if (step.isRefused) {
        assert.throws(() => entity.step(step.trigger, "", step.given), UndeclaredTransitionError);
      } else {
        const { machine: named, key, cause, new: entered } = entity.step(step.trigger, "", step.given);
        assert.deepEqual([named, key, cause, entered], [machine, "one", step.trigger, step.state]);
      }
      assert.equal(entity.state, step.state);
      assert.equal(entity.patience, step.patience ?? Infinity);
      assert.equal(entity.mayEnd, step.mayEnd);
    }
  }
});

test(`${golden.sessions.length} sessions of a stub`, () => {
  for (const { token, owner, begun, steps } of golden.sessions) {
    const { port, taken } = recordingPort();
    const core = new StubClient(golden.stub, port, () => golden.jitter, token, owner);
    const messages = new Map();
    const shown = () => plain(taken()).map(([name, ...given]) => [name, ...given.map((one) => one?.body ? one.id : rounded(one))]);
    core.begin();
    assert.deepEqual(shown(), begun);
    for (const { now, calls, asked, deadline, queued } of steps) {
      for (const [name, one, ...more] of calls) {
        // The same message is the same object.
        if (one?.body && !messages.has(one.id)) messages.set(one.id, one);
        core[name](...(one === undefined ? [] : [messages.get(one.body && one.id) ?? one]), ...more, now);
      }
      assert.deepEqual(shown(), asked.map((one) => one.map(rounded)), JSON.stringify(calls[0]));
      assert.ok(Math.abs((deadline ?? 1e9) - Math.min(core.deadline, 1e9)) < 1e-6, JSON.stringify(calls[0]));
      assert.equal(core.queued, queued);
    }
  }
});

test(`${golden.tables.length} tables of direct links`, () => {
  for (const { runtime, asked, steps } of golden.tables) {
    const { port, taken } = recordingPort();
    const table = new LinkTable(runtime, port);
    for (const { now, call, given, asked: expected, deadline, live } of steps) {
      table[call](...given, now);
      assert.deepEqual(plain(taken()), expected, JSON.stringify([call, given]));
      assert.ok(Math.abs((deadline ?? 1e9) - Math.min(table.deadline, 1e9)) < 1e-6, call);
      assert.deepEqual(asked.map((one) => table.liveLink(one)), live);
    }
  }
});

test(`${golden.lists.length} pairs of registries that list what lives at their ends`, () => {
  for (const { runtime, steps } of golden.lists) {
    const listed = [];
    const { port, taken } = recordingPort();
    const followers = new Followers(runtime, port, () => listed);
    const followed = new Followed(runtime, port);
    for (const { now, call, given, local, asked, deadline, isHeard } of steps) {
      listed.splice(0, listed.length, ...local);
      for (const core of [followers, followed]) core[call]?.(...given, now);
      const made = plain(taken()).map(([name, one, ...more]) => {
        if (name === "step") delete one.why;
        if (name === "answer") return [name, { id: one.id, body: { code: one.body.code, value: one.body.value } }];
        return [name, one, ...more.map((urls) => (Array.isArray(urls) ? urls.sort() : urls))];
      });
      assert.deepEqual(plain(made), asked, JSON.stringify([call, given]));
      assert.equal(deadline ?? Infinity, followers.deadline);
      assert.equal(followers.isHeard, isHeard);
    }
  }
});

/** A port that keeps what it is asked for. */
function recordingPort() {
  const asked = [];
  const get = (_, name) => (...given) => void asked.push([name, ...given]);
  return { port: new Proxy({}, { get }), taken: () => asked.splice(0) };
}

const rounded = (one) => (typeof one === "number" ? Math.round(one * 1e6) / 1e6 : one);
