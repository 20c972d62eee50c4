import fc from 'fast-check';
import { isIPv6 } from 'node:net';
import { expect, test } from 'vitest';
import { forwardedAddress } from './client-address.js';
import { ipKey } from './ip-key.js';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:8443', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['64:ff9b::192.0.2.1', '192.0.2.1'],
  ['64:ff9b::c000:201', '192.0.2.1'],
  ['64:ff9b:1::192.0.2.1', '64:ff9b:1:0:0:0:0:0/56'],
  ['2001:db8:1:2ff:1:2:3:4', '2001:db8:1:200:0:0:0:0/56'],
  ['[2001:db8:1:2ff::1]:443', '2001:db8:1:200:0:0:0:0/56'],
  ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:0/56'],
  ['::1', '0:0:0:0:0:0:0:0/56'],
])('the key of %s is %s', (address, key) => {
  expect(ipKey(address)).toBe(key);
});

test.each([
  '',
  'localhost',
  '1.2.3',
  '1.2.3.256',
  '01.2.3.4',
  '1::2::3',
  '12345::',
  ':::',
  '1:2:3:4:5:6:7:8:9',
  '::ffff:1.2.3',
])('the text %j is refused, because it is no address', (address) => {
  expect(() => ipKey(address)).toThrow('address');
});

test('two addresses have the same key exactly if their first bits are the same', () => {
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
  const bitsOf = (address: readonly number[], prefix: number): string =>
    address
      .map((group) => group.toString(2).padStart(16, '0'))
      .join('')
      .slice(0, prefix);
  const print = (address: readonly number[]): string => address.map((group) => group.toString(16)).join(':');
  const isEmbedded = (address: readonly number[]): boolean =>
    /^(?:0,0,0,0,0,65535|100,65435,0,0,0,0),/.test(address.join());
  fc.assert(
    fc.property(groups, fc.nat(127), fc.integer({ min: 1, max: 128 }), (first, flipped, ipv6Prefix) => {
      const second = first.with(flipped >> 4, (first[flipped >> 4] ?? 0) ^ (0x8000 >> (flipped & 15)));
      fc.pre(!isEmbedded(first) && !isEmbedded(second));
      const [a, b] = [first, second].map((address) => ipKey(print(address), { ipv6Prefix }));
      expect(a === b).toBe(bitsOf(first, ipv6Prefix) === bitsOf(second, ipv6Prefix));
      expect(isIPv6((a ?? '').split('/')[0] ?? '')).toBe(true);
    }),
  );
});

test('every IPv6 address that Node knows has a key, and no other text has', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV6(), fc.stringMatching(/^[0-9a-f:.]{0,30}$/)), (text) => {
      let key: string | null = null;
      try {
        key = ipKey(text);
      } catch {
        // Not an address.
      }
      if (!/^[\d.]+(:\d+)?$/.test(text)) expect(key !== null).toBe(isIPv6(text));
    }),
  );
});

test('a prefix that is no number of bits is refused', () => {
  for (const ipv6Prefix of [0, 129, 1.5, Number.NaN]) expect(() => ipKey('::1', { ipv6Prefix })).toThrow('ipv6Prefix');
});

test.each([
  ['203.0.113.7, 198.51.100.2', 0, null],
  ['203.0.113.7, 198.51.100.2', 1, '198.51.100.2'],
  ['203.0.113.7, 198.51.100.2', 2, '203.0.113.7'],
  ['203.0.113.7, 198.51.100.2', 3, null],
  ['', 1, null],
  [null, 1, null],
] as const)('of X-Forwarded-For %j with %d trusted proxies the client is %j', (header, trusted, address) => {
  expect(forwardedAddress(header, trusted)).toBe(address);
});
