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
  expect(activity.refusals.top(NOW, 9)).toMatchObject([
    { count: 2, detail: { entityId: 'user-1', limit: 'rpm', level: 'team' } },
    { count: 1, detail: { limit: null, level: 'team', reason: 'paused' } },
  ]);
  expect(activity.pausesAt(NOW)).toEqual([paused]);
});

test('a pause is listed until it ends by itself or by a resume, and at most 100 are kept', () => {
  const activity = new Activity(NOW);
  const until = new Date(NOW + 5_000).toISOString();
  activity.apply({ type: 'pause', data: { entityId: 'a', resource: null, until, reason: 'x' } }, NOW);
  activity.apply({ type: 'pause', data: { entityId: 'b', resource: 'r', until: null, reason: 'y' } }, NOW);
  expect(activity.pausesAt(NOW).map(({ entityId }) => entityId)).toEqual(['a', 'b']);
  expect(activity.pausesAt(NOW + 5_000).map(({ entityId }) => entityId)).toEqual(['b']);
  activity.apply({ type: 'resume', data: { entityId: 'b', resource: 'r' } }, NOW);
  for (let at = 0; at < 300; at++) {
    activity.apply({ type: 'pause', data: { entityId: `e${at}`, resource: null, until: null, reason: 'z' } }, NOW);
  }
  expect(activity.pausesAt(NOW)).toHaveLength(100);
});

test('the denials of the watched entity are kept, the newest first, at most 50', () => {
  const activity = new Activity(NOW);
  activity.watch('user-1');
  for (let at = 0; at < 60; at++) activity.apply({ type: 'decision', data: denial() }, NOW + at);
  activity.apply({ type: 'decision', data: denial({ entityId: 'user-2' }) }, NOW + 99);
  expect(activity.denialsOf('user-1').map(({ atMs }) => atMs - NOW)).toEqual(
    Array.from({ length: 50 }, (_, at) => 59 - at),
  );
  expect(activity.denialsOf('user-2')).toEqual([]);
});

test('an outage lasts from its first event to its last, and missed events are counted', () => {
  const activity = new Activity(NOW);
  activity.apply({ type: 'outage-begin', data: { error: 'refused' } }, NOW);
  expect(activity.outage).toEqual({ sinceMs: NOW, error: 'refused' });
  activity.apply({ type: 'outage-end', data: {} }, NOW + 1);
  expect(activity.outage).toBeNull();
  activity.apply({ type: 'missed', data: { count: 7 } }, NOW);
  expect(activity.missed).toBe(7);
});

test('a refusal of a provider is listed with what it counts and its wait', () => {
  const activity = new Activity(NOW);
  const data = { entityId: 'key-1', resource: 'gpt-4', dimension: 'tokens', retryAfterMs: 1_500 };
  activity.apply({ type: 'provider-throttle', data }, NOW);
  activity.apply({ type: 'provider-throttle', data: { ...data, dimension: null, retryAfterMs: null } }, NOW);
  expect(activity.changes.newest().map(({ text }) => text)).toEqual([
    'key-1 on gpt-4: no wait stated',
    'key-1 on gpt-4: tokens, for 1.5 s',
  ]);
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
