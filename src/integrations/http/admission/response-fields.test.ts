import { expect, test } from 'vitest';
import { addFields } from './response-fields.js';

const OURS = [
  ['Retry-After', '7'],
  ['retry-after-ms', '6500'],
] as const;

const waits = (present: Readonly<Record<string, string>>): readonly (string | null)[] => {
  const headers = new Headers(present);
  addFields({ get: (name) => headers.get(name) ?? undefined, set: (name, value) => headers.set(name, value) }, OURS);
  return [headers.get('retry-after'), headers.get('retry-after-ms')];
};
const dateIn = (ms: number): string => new Date(Date.now() + ms).toUTCString();

test('both forms of the wait come from the limiter whose wait is longer', () => {
  expect(waits({})).toEqual(['7', '6500']);
  expect(waits({ 'Retry-After': '100' })).toEqual(['100', null]);
  expect(waits({ 'retry-after-ms': '100000' })).toEqual([null, '100000']);
  expect(waits({ 'Retry-After': '9', 'retry-after-ms': '8100' })).toEqual(['9', '8100']);
  expect(waits({ 'Retry-After': '5', 'retry-after-ms': '4100' })).toEqual(['7', '6500']);
  expect(waits({ 'Retry-After': '5' })).toEqual(['7', '6500']);
  expect(waits({ 'retry-after-ms': '5' })).toEqual(['7', '6500']);
});

test('an instant is compared by the time until it, and a wait that cannot be read stays', () => {
  const far = dateIn(3_600_000);
  expect(waits({ 'Retry-After': far })).toEqual([far, null]);
  expect(waits({ 'Retry-After': dateIn(-3_600_000) })).toEqual(['7', '6500']);
  expect(waits({ 'Retry-After': 'soon' })).toEqual(['soon', null]);
});

test('fields of a grant, which states no wait, leave the present wait as it is', () => {
  const headers = new Headers({ 'Retry-After': '5' });
  addFields({ get: (name) => headers.get(name) ?? undefined, set: (name, value) => headers.set(name, value) }, [
    ['RateLimit', '"a";r=1'],
  ]);
  expect([headers.get('retry-after'), headers.get('ratelimit')]).toEqual(['5', '"a";r=1']);
});
