import pc from 'picocolors';
import { expect, test } from 'vitest';
import { renderAcquire } from './acquire-view.js';
import type { AcquireShape } from './acquire-shapes.js';

const PLAIN = pc.createColors(false);

const limit = { name: 'rpm', limit: 'rpm:10/min', asked: 4, before: 3, after: 3, exceeded: true, retryAfterMs: 6_000 };

const DENIED: AcquireShape = {
  granted: false,
  dryRun: false,
  entityId: 'user-1',
  resource: 'gpt-4',
  reason: 'exhausted',
  retryAfterMs: 6_000,
  decidedBy: 'store',
  paused: null,
  lease: null,
  levels: [
    { entityId: 'user-1', configSource: 'system', limits: [{ ...limit, before: 9, after: 9, exceeded: false }] },
    { entityId: 'proj-1', configSource: 'entity_default', limits: [limit] },
    { entityId: 'org-1', configSource: null, limits: [] },
  ],
};

test('the explanation of a denial marks the limit that refused, the missing amount and the wait', () => {
  expect(renderAcquire(DENIED, PLAIN).split('\n')).toEqual([
    'denied: user-1 on gpt-4; refused by rpm of proj-1; retry in 6 s',
    '',
    'user-1: limits from system',
    '   LIMIT       BEFORE  ASKED  AFTER',
    '✓  rpm:10/min       9      4      9',
    '',
    'proj-1 (parent): limits from entity proj-1, every resource',
    '   LIMIT       BEFORE  ASKED  AFTER',
    '✗  rpm:10/min       3      4      3  REFUSED: 1 too many, fits in 6 s',
    '',
    'org-1 (parent): no limits, so nothing is taken from it',
    '',
    'Nothing was taken at any level.',
  ]);
});

test('the explanation of a denial by contention names no limit', () => {
  const [first] = renderAcquire({ ...DENIED, reason: 'contended', retryAfterMs: 100, levels: [] }, PLAIN).split('\n');
  expect(first).toBe('denied: user-1 on gpt-4; too many writers at once; retry in 100 ms');
});

test('the explanation says that a decision did not come from the store', () => {
  const [first] = renderAcquire({ ...DENIED, granted: true, decidedBy: 'open', levels: [] }, PLAIN).split('\n');
  expect(first).toBe('granted: user-1 on gpt-4 (decided by open, not by the store)');
});

test.each([
  [
    { id: 'L1', state: 'committed', expiresAt: null },
    /^The lease was committed: rates stay spent, slots were given back\.$/,
  ],
  [{ id: 'L1', state: 'held', expiresAt: null }, /^Rates stay spent\. There is nothing to hold/],
  [{ id: 'L1', state: 'held', expiresAt: '2027-01-15T10:00:00.000Z' }, /^Lease L1 is held until 2027-01-15 10:00:00Z/],
] as const)('the last line gives the outcome of the lease %j', (lease, says) => {
  const text = renderAcquire({ ...DENIED, granted: true, reason: null, retryAfterMs: null, lease }, PLAIN);
  expect(text.split('\n').at(-1)).toMatch(says);
});

test('colours mark the refusal, and do not change the text', () => {
  const coloured = renderAcquire(DENIED, pc.createColors(true));
  expect(coloured).toContain('\u001B[31mREFUSED: 1 too many');
  // oxlint-disable-next-line no-control-regex -- colours
  expect(coloured.replaceAll(/\u001B\[\d+m/g, '')).toBe(renderAcquire(DENIED, PLAIN));
});
