import { expect, test } from 'vitest';
import type { Decision } from '../api/events.js';
import { Activity } from './activity.js';

const NOW = 1_800_000_000_000;

function denial(change: Partial<Decision> = {}): Decision {
  return {
    namespace: 'default',
    entityId: 'user-1',
    resource: 'gpt-4',
    consume: { rpm: 1 },
    granted: false,
    reason: 'exhausted',
    retryAfterMs: 500,
    decidedBy: 'store',
    violations: [{ entityId: 'team', limit: 'rpm', requested: 1, available: 0, retryAfterMs: 500 }],
    paused: null,
    tokens: {},
    durationMs: 3,
    ...change,
  };
}

test('decisions are counted by outcome, and those of the outage policy as degraded too', () => {
  const activity = new Activity(NOW);
  activity.apply({ type: 'decision', data: denial() }, NOW);
  activity.apply({ type: 'decision', data: denial({ granted: true, decidedBy: 'open', violations: [] }) }, NOW);
  const counts = [activity.granted, activity.denied, activity.degraded].map((ring) => ring.read(NOW + 1_000).at(-1));
  expect(counts).toEqual([1, 1, 1]);
});

test('a refusal names the limit and the level that refused; a pause has no limit', () => {
  const activity = new Activity(NOW);
  const paused = { entityId: 'team', resource: null, until: null, reason: 'abuse' };
  activity.apply({ type: 'decision', data: denial() }, NOW);
  activity.apply({ type: 'decision', data: denial() }, NOW);
  activity.apply({ type: 'decision', data: denial({ reason: 'paused', violations: [], paused }) }, NOW);
  expect(activity.refusals.top(NOW, 9).rows).toMatchObject([
    { count: 2, detail: { entityId: 'user-1', limit: 'rpm', level: 'team' } },
    { count: 1, detail: { limit: null, level: 'team', reason: 'paused' } },
  ]);
  expect(activity.pauses.runningAt(NOW)).toEqual([paused]);
});

test('a pause is listed until it ends by itself or by a resume, and at most 100 are kept', () => {
  const activity = new Activity(NOW);
  const until = new Date(NOW + 5_000).toISOString();
  activity.apply({ type: 'pause', data: { entityId: 'a', resource: null, until, reason: 'x' } }, NOW);
  activity.apply({ type: 'pause', data: { entityId: 'b', resource: 'r', until: null, reason: 'y' } }, NOW);
  expect(activity.pauses.runningAt(NOW).map(({ entityId }) => entityId)).toEqual(['a', 'b']);
  expect(activity.pauses.runningAt(NOW + 5_000).map(({ entityId }) => entityId)).toEqual(['b']);
  activity.apply({ type: 'resume', data: { entityId: 'b', resource: 'r' } }, NOW);
  for (let at = 0; at < 300; at++) {
    activity.apply({ type: 'pause', data: { entityId: `e${at}`, resource: null, until: null, reason: 'z' } }, NOW);
  }
  expect(activity.pauses.runningAt(NOW)).toHaveLength(100);
});

test('the denials of the watched entity are kept, the newest first, at most 50', () => {
  const activity = new Activity(NOW);
  activity.denials.of('user-1');
  for (let at = 0; at < 60; at++) activity.apply({ type: 'decision', data: denial() }, NOW + at);
  activity.apply({ type: 'decision', data: denial({ entityId: 'user-2' }) }, NOW + 99);
  expect(activity.denials.of('user-1').map(({ atMs }) => atMs - NOW)).toEqual(
    Array.from({ length: 50 }, (_, at) => 59 - at),
  );
  expect(activity.denials.of('user-2').map(({ atMs }) => atMs - NOW)).toEqual([99]);
});

test('the denials of a parent are those of its children that its limits or its pause refused', () => {
  const activity = new Activity(NOW);
  activity.denials.of('team');
  const paused = { entityId: 'team', resource: null, until: null, reason: 'abuse' };
  const own = [{ entityId: 'user-1', limit: 'rpm', requested: 1, available: 0, retryAfterMs: 500 }];
  activity.apply({ type: 'decision', data: denial() }, NOW);
  activity.apply({ type: 'decision', data: denial({ violations: own }) }, NOW + 1);
  activity.apply({ type: 'decision', data: denial({ violations: [], reason: 'paused', paused }) }, NOW + 2);
  expect(activity.denials.of('team').map(({ atMs }) => atMs - NOW)).toEqual([2, 0]);
});

test('tokens are summed by limit as reserved, settled and never settled, and the waits of calls that waited are kept', () => {
  const activity = new Activity(NOW);
  const grant = denial({ granted: true, violations: [], tokens: { rpm: 1, tpm: 500 } });
  activity.apply({ type: 'decision', data: { ...grant, waitedMs: 40 } }, NOW);
  activity.apply({ type: 'decision', data: { ...grant, waitedMs: 0 } }, NOW);
  activity.apply({ type: 'lease-end', data: { how: 'committed', tokens: { rpm: 1, tpm: 320 } } }, NOW);
  activity.apply({ type: 'lease-end', data: { how: 'expired', tokens: { rpm: 1 } } }, NOW);
  activity.apply({ type: 'lease-end', data: { how: 'rolled-back', tokens: { rpm: 9 } } }, NOW);
  expect(activity.settlements.rows()).toEqual([
    { limit: 'rpm', reserved: 2, settled: 1, lost: 1 },
    { limit: 'tpm', reserved: 1_000, settled: 320, lost: 0 },
  ]);
  expect(activity.waits.quantile(NOW, 0.5)).toBe(50);
});

test('an outage lasts from its first event to its last, and missed events are counted', () => {
  const activity = new Activity(NOW);
  expect(activity.outage).toBeUndefined();
  activity.apply({ type: 'outage-begin', data: { error: 'refused' } }, NOW);
  expect(activity.outage).toEqual({ sinceMs: NOW, error: 'refused' });
  activity.apply({ type: 'outage-end', data: {} }, NOW + 1);
  expect(activity.outage).toBeNull();
  activity.apply({ type: 'missed', data: { count: 7 } }, NOW);
  expect(activity.missed).toBe(7);
});

test('whether the store answers is known from the first decision, also where the outage began before the page was opened', () => {
  const activity = new Activity(NOW);
  activity.apply({ type: 'decision', data: denial({ decidedBy: 'deny-cache' }) }, NOW);
  expect(activity.outage).toBeUndefined();
  activity.apply({ type: 'decision', data: denial({ granted: true, decidedBy: 'open', violations: [] }) }, NOW + 1);
  expect(activity.outage).toEqual({ sinceMs: NOW + 1, error: null });
  activity.apply({ type: 'decision', data: denial({ decidedBy: 'fallback' }) }, NOW + 2);
  expect(activity.outage).toEqual({ sinceMs: NOW + 1, error: null });
  activity.apply({ type: 'decision', data: denial() }, NOW + 3);
  expect(activity.outage).toBeNull();
  const other = new Activity(NOW);
  other.apply({ type: 'decision', data: denial() }, NOW);
  expect(other.outage).toBeNull();
});

test('a pause from before a lost connection is listed again if the store still has it, unless an event was newer', () => {
  const activity = new Activity(NOW);
  const before = { resource: null, until: null, reason: 'before' };
  const [resumed, paused] = [
    { ...before, entityId: 'resumed' },
    { ...before, entityId: 'paused' },
  ];
  for (const data of [{ ...before, entityId: 'kept' }, { ...before, entityId: 'ended' }, resumed, paused]) {
    activity.apply({ type: 'pause', data }, NOW);
  }
  expect(activity.regain(NOW)).toBe(false);
  activity.lose(NOW + 1_000);
  expect(activity.regain(NOW + 2_000)).toBe(true);
  const asked = activity.pauses.runningAt(NOW + 2_000);
  activity.apply({ type: 'resume', data: resumed }, NOW + 3_000);
  activity.apply({ type: 'pause', data: { ...paused, reason: 'newer' } }, NOW + 3_000);
  for (const one of asked) {
    activity.pauses.check(one, one.entityId === 'ended' ? undefined : { until: null, reason: 'stored' });
  }
  const listed = activity.pauses.runningAt(NOW + 4_000).map(({ entityId, reason }) => [entityId, reason]);
  expect(listed).toEqual([
    ['kept', 'stored'],
    ['paused', 'newer'],
  ]);
});

test('a pause that cannot be read after a lost connection stays, and is marked until it was read', () => {
  const activity = new Activity(NOW);
  activity.apply({ type: 'pause', data: { entityId: 'a', resource: null, until: null, reason: 'x' } }, NOW);
  const check = (stored: null | { until: null; reason: string }) => {
    for (const one of activity.pauses.runningAt(NOW)) activity.pauses.check(one, stored);
    return activity.pauses.runningAt(NOW).map(({ reason, isUnchecked }) => [reason, isUnchecked]);
  };
  expect(check(null)).toEqual([['x', true]]);
  expect(check({ until: null, reason: 'y' })).toEqual([['y', false]]);
});

test('after a lost connection the outage from before is not known any more', () => {
  const activity = new Activity(NOW);
  activity.apply({ type: 'outage-begin', data: { error: 'refused' } }, NOW);
  activity.apply({ type: 'pause', data: { entityId: 'a', resource: null, until: null, reason: 'x' } }, NOW);
  activity.lose(NOW + 1_000);
  expect([activity.outage, activity.pauses.runningAt(NOW).length]).toEqual([undefined, 1]);
  activity.regain(NOW + 60_000);
  expect(activity.outage).toBeUndefined();
  activity.apply({ type: 'decision', data: denial() }, NOW + 61_000);
  expect(activity.outage).toBeNull();
});

test('refusals of providers are counted by resource, with what the provider said last, and push no outage out of the list', () => {
  const activity = new Activity(NOW);
  const data = { entityId: 'key-1', resource: 'gpt-4', dimension: 'tokens', retryAfterMs: 1_500 };
  activity.apply({ type: 'outage-begin', data: { error: 'refused' } }, NOW);
  for (let at = 0; at < 100; at++) activity.apply({ type: 'provider-throttle', data }, NOW + at);
  activity.apply(
    { type: 'provider-throttle', data: { ...data, resource: 'o1', dimension: null, retryAfterMs: null } },
    NOW + 200,
  );
  expect(activity.throttles.rows()).toEqual([
    { resource: 'o1', count: 1, atMs: NOW + 200, text: 'key-1, no wait stated' },
    { resource: 'gpt-4', count: 100, atMs: NOW + 99, text: 'key-1, tokens for 1.5 s' },
  ]);
  expect(activity.changes.newest().map(({ type }) => type)).toEqual(['outage-begin']);
  for (let at = 0; at < 50; at++)
    activity.apply({ type: 'provider-throttle', data: { ...data, resource: `r${at}` } }, NOW);
  expect(activity.throttles.rows()).toHaveLength(20);
});

test('an entity that is opened has the denials that were kept of all entities, as many as the last 500 have of it', () => {
  const activity = new Activity(NOW);
  for (let at = 0; at < 600; at++) {
    activity.apply(
      { type: 'decision', data: denial({ entityId: at % 100 === 0 ? 'rare' : 'user-1', violations: [] }) },
      NOW + at,
    );
  }
  activity.denials.of('rare');
  activity.apply({ type: 'decision', data: denial({ entityId: 'rare' }) }, NOW + 900);
  expect(activity.denials.of('rare').map(({ atMs }) => atMs - NOW)).toEqual([900, 500, 400, 300, 200, 100]);
});

test('the chart shows at least a minute and at most its history', () => {
  const activity = new Activity(NOW);
  expect([1, 90, 9_999].map((seconds) => activity.secondsAt(NOW + seconds * 1_000))).toEqual([60, 90, 299]);
});

test('seconds before the page was opened, or without a connection, are not known, and do not lower a rate', () => {
  const activity = new Activity(NOW);
  const decide = (atMs: number): void => activity.apply({ type: 'decision', data: denial() }, atMs);
  for (const second of [0, 1, 2]) decide(NOW + second * 1_000);
  activity.lose(NOW + 3_000);
  expect(activity.history(activity.denied, NOW + 5_000, 7)).toEqual([null, null, 1, 1, 1, null, null]);
  expect(activity.rate(activity.denied, NOW + 5_000, 7)).toBe(1);
  activity.regain(NOW + 5_500);
  decide(NOW + 6_000);
  expect(activity.history(activity.denied, NOW + 7_000, 7)).toEqual([1, 1, 1, null, null, null, 1]);
  activity.lose(NOW + 8_000);
  expect(activity.rate(activity.denied, NOW + 60_000, 10)).toBeNull();
  activity.regain(NOW + 10_000_000);
  expect(activity.history(activity.denied, NOW + 10_002_000, 3)).toEqual([null, null, 0]);
});
