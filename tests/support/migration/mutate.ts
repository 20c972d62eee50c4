import type { Random } from '../../../src/testing/conformance/kit/random.js';

/** Texts with a meaning in YAML, JSON, JavaScript or a limit. */
const TOKENS = [
  '&a ', '*a', '{', '}', '[', ']', ': ', ':', '- ', '? ', '|\n', '>-\n', "'", '"', '#', ' #', '\t', '\n', '\r\n', '  ', ',',
  '%YAML 1.1\n---\n', '---\n', '...\n', '!!str ', '!!binary ', '!x ', '<<: ', 'null', '~', 'true', '1', '0x10', '1e999', '-0',
  '.nan', '__proto__', 'constructor', 'toString', 'parent: a', 'limits: ["rpm:1/min"]', 'rpm:1/min', '/concurrent', '@', '/min',
  '\\u0000', '\\x', '\u2028', '\u{85}', '\u{feff}', '\0', '😀', '9'.repeat(40), ' '.repeat(50), 'default', 'entities:', 'system:',
].map((token) => Buffer.from(token)); // prettier-ignore

const HALF = Buffer.from([0xed, 0xa0, 0x80]);

/** Random mutations of one of the seeds. */
export function mutate(random: Random, seeds: readonly Buffer[]): Buffer {
  let bytes = random.pick(seeds);
  for (let count = random.pick([1, 1, 1, 2, 2, 3, 6]); count > 0; count--) bytes = accident(random, bytes, seeds);
  return bytes;
}

function accident(random: Random, bytes: Buffer, seeds: readonly Buffer[]): Buffer {
  const at = random.whole(0, bytes.length);
  const end = Math.min(bytes.length, at + random.whole(0, random.pick([1, 4, 40])));
  const [head, part, tail] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  switch (random.whole(0, 7)) {
    case 0:
      return Buffer.concat([head, tail]);
    case 1:
      return Buffer.concat([head, part, part, tail]);
    case 2:
      return Buffer.concat([head, Buffer.from([random.whole(0, 255)]), tail]);
    case 3: {
      const other = random.pick(seeds);
      const from = random.whole(0, other.length);
      return Buffer.concat([head, other.subarray(from, from + random.whole(0, 60)), tail]);
    }
    case 4:
      return random.whole(0, 9) === 0 ? Buffer.concat([head, HALF, tail]) : Buffer.concat([tail, part, head]);
    default:
      return Buffer.concat([head, random.pick(TOKENS), random.whole(0, 1) === 0 ? part : Buffer.alloc(0), tail]);
  }
}
