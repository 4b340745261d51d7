/** BLAKE2b (RFC 7693) of 8 bytes without a key: the digest by which traces compare messages. */

const IV = new Uint32Array([
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
]);
/** The ten permutations of the message words, as RFC 7693 defines them. */
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8",
  "905724afe1bc683d", "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a",
  "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));
const SIZE = 8;
const BLOCK = 128;

const v = new Uint32Array(32);
const m = new Uint32Array(32);

/**
 * @param {number} a
 * @param {number} low
 * @param {number} high
 */
function add(a, low, high) {
  const sum = v[a] + low;
  v[a] = sum;
  v[a + 1] += high + (sum > 0xffffffff ? 1 : 0);
}

/**
 * Combine the word at `d` with that at `a` (XOR), and rotate it to the right.
 *
 * @param {number} d
 * @param {number} a
 * @param {number} count
 */
function mix(d, a, count) {
  let low = v[d] ^ v[a];
  let high = v[d + 1] ^ v[a + 1];
  if (count >= 32) [low, high] = [high, low];
  const rest = count % 32;
  v[d] = rest ? (low >>> rest) | (high << (32 - rest)) : low;
  v[d + 1] = rest ? (high >>> rest) | (low << (32 - rest)) : high;
}

/**
 * @param {number} a
 * @param {number} b
 * @param {number} c
 * @param {number} d
 * @param {number} x
 * @param {number} y
 */
function quarter(a, b, c, d, x, y) {
  add(a, v[b], v[b + 1]);
  add(a, m[x], m[x + 1]);
  mix(d, a, 32);
  add(c, v[d], v[d + 1]);
  mix(b, c, 24);
  add(a, v[b], v[b + 1]);
  add(a, m[y], m[y + 1]);
  mix(d, a, 16);
  add(c, v[d], v[d + 1]);
  mix(b, c, 63);
}

/**
 * @param {Uint32Array} h
 * @param {DataView} block
 * @param {number} counted bytes up to the end of this block
 * @param {boolean} isLast
 */
function compress(h, block, counted, isLast) {
  v.set(h);
  v.set(IV, 16);
  v[24] ^= counted;
  if (isLast) {
    v[28] = ~v[28];
    v[29] = ~v[29];
  }
  for (let at = 0; at < 32; at += 1) m[at] = block.getUint32(at * 4, true);
  for (let round = 0; round < 12; round += 1) {
    const s = SIGMA[round % 10];
    for (let at = 0; at < 8; at += 1) {
      const [x, y] = [s[2 * at] * 2, s[2 * at + 1] * 2];
      const shift = at < 4 ? 0 : 1;
      const a = (at % 4) * 2;
      const b = 8 + ((at + shift) % 4) * 2;
      const c = 16 + ((at + shift * 2) % 4) * 2;
      const d = 24 + ((at + shift * 3) % 4) * 2;
      quarter(a, b, c, d, x, y);
    }
  }
  for (let at = 0; at < 16; at += 1) h[at] ^= v[at] ^ v[at + 16];
}

/**
 * Return the hash of a text, 16 hexadecimal digits.
 *
 * @param {string} text
 */
export function blake2b(text) {
  const bytes = new TextEncoder().encode(text);
  const h = new Uint32Array(IV);
  h[0] ^= 0x01010000 ^ SIZE;
  const blocks = Math.max(1, Math.ceil(bytes.length / BLOCK));
  const padded = new Uint8Array(blocks * BLOCK);
  padded.set(bytes);
  for (let at = 0; at < blocks; at += 1) {
    const isLast = at === blocks - 1;
    const counted = isLast ? bytes.length : (at + 1) * BLOCK;
    compress(h, new DataView(padded.buffer, at * BLOCK, BLOCK), counted, isLast);
  }
  const hex = /** @param {number} word */ (word) =>
    [0, 8, 16, 24].map((by) => ((word >>> by) & 255).toString(16).padStart(2, "0")).join("");
  return hex(h[0]) + hex(h[1]);
}
