// Values of JSON that nobody expects.

const nested = (depth) => (depth ? [nested(depth - 1)] : []);
const ODD = [
  ...[null, true, -1, 0, 1.5, 1e300, 2 ** 53, "", "x", "__proto__", "constructor", "a.b", "comm://a.ex/o"],
  ...[[], {}, [[]], [null, {}], { length: 1e9 }, JSON.parse('{"__proto__": {"polluted": 1}}'), nested(20)],
  ...[{ toString: 1, valueOf: 1 }, [{ toString: 1, valueOf: 1 }], { then: 1 }, Array.from({ length: 300 }, () => "x")],
];

/** Each body with one field, or one field of its value, in the place of which something odd stands. */
export function* spoilt(body) {
  for (const odd of ODD) {
    for (const key of Object.keys(body)) {
      yield { ...body, [key]: odd };
      if (key === "value" && body.value?.constructor === Object) {
        for (const inner of Object.keys(body.value)) yield { ...body, value: { ...body.value, [inner]: odd } };
      }
    }
  }
}
