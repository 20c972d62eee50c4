import { expect, test } from 'vitest';
import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { EventCounter } from './event-counter.js';

/** Counts events, and keeps the labels of every count. */
function counting(now: () => number = () => 0) {
  const labels: (readonly string[])[] = [];
  const counter = new EventCounter({ add: (_, __, seen) => labels.push(seen), observe: () => {} }, now);
  return { counter, labels };
}

function throttleOf(change: { readonly resource?: string; readonly dimension?: string }): LimiterEvent {
  const place = { namespace: 'default', entityId: 'user-1', resource: 'gpt-4', dimension: 'tokens', ...change };
  return { type: 'provider-throttle', ...place, retryAfterMs: null };
}

test('names of resources and of dimensions beyond a bound are counted together, because callers may send any number', () => {
  const { counter, labels } = counting();
  for (let at = 0; at < 1_000; at++) counter.onEvent(throttleOf({ resource: `r${at}`, dimension: `d${at}` }));
  expect(new Set(labels.map(([, resource]) => resource)).size).toBe(201);
  expect(new Set(labels.map(([dimension]) => dimension)).size).toBe(21);
  expect(labels.at(-1)).toEqual(['other', 'other']);
  counter.onEvent(throttleOf({ resource: 'r7', dimension: 'd7' }));
  expect(labels.at(-1)).toEqual(['d7', 'r7']);
});

test('names of limits beyond a bound are counted together', () => {
  const { counter, labels } = counting();
  const tokens = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`limit-${at}`, 1]));
  const place = { namespace: 'default', entityId: 'user-1', resource: 'gpt-4', leaseId: 'x' };
  counter.onEvent({ type: 'lease-end', ...place, how: 'committed', amounts: tokens, tokens });
  expect(new Set(labels.slice(1).map(([, limit]) => limit)).size).toBe(51);
});

test('slots of leases that no process ends leave the memory after their expiry, also if no one reads the gauge', () => {
  let nowMs = 0;
  const { counter } = counting(() => nowMs);
  for (let at = 0; at < 5_000; at++) {
    nowMs = at * 10;
    const place = { namespace: 'default', entityId: 'user-1', resource: 'gpt-4', leaseId: `lease-${at}` };
    counter.onEvent({ type: 'slots', ...place, slots: { slots: 1 }, expiresAt: new Date(nowMs + 1_000) });
  }
  expect(counter.readGauges()).toEqual([
    { key: 'slots', value: 100, labels: ['slots', 'gpt-4'] },
    { key: 'outage', value: 0, labels: [] },
  ]);
});

test('an outage is a gauge of 1 until the store answers', () => {
  const { counter } = counting();
  const outage = (): number | undefined => counter.readGauges().find(({ key }) => key === 'outage')?.value;
  counter.onEvent({ type: 'outage-begin', error: new Error('down') });
  expect(outage()).toBe(1);
  counter.onEvent({ type: 'outage-end' });
  expect(outage()).toBe(0);
});
