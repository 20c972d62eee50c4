import { strFromU8, unzipSync } from 'fflate/browser';
import { afterEach, expect, test } from 'vitest';
import { zipCode } from './zip-code.js';

const zone = process.env['TZ'];
afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const CODE = 'exports.handler = async () => "é";\n'.repeat(50);

test("the zip has the code under the name that Lambda's handler setting expects", () => {
  const files = unzipSync(zipCode(CODE).bytes);
  expect(Object.keys(files)).toEqual(['index.cjs']);
  expect(strFromU8(files['index.cjs'] ?? new Uint8Array())).toBe(CODE);
});

test('the same code gives the same bytes in every time zone, and different code gives different bytes', () => {
  const hashes = ['Asia/Tokyo', 'America/Los_Angeles', 'UTC'].map((name) => {
    process.env['TZ'] = name;
    return zipCode(CODE).sha256;
  });
  expect(new Set(hashes).size).toBe(1);
  expect(zipCode(`${CODE} `).sha256).not.toBe(hashes[0]);
});

test("the hash has the format of Lambda's CodeSha256", () => {
  expect(zipCode(CODE).sha256).toMatch(/^[A-Za-z0-9+/]{43}=$/);
});
