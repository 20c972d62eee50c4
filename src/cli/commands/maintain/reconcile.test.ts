import pc from 'picocolors';
import { expect, test } from 'vitest';
import { renderReport, renderReportLine } from './reconcile.js';
import type { ReconcileShape } from './reconcile.js';

const PLAIN = pc.createColors(false);
const AT = new Date('2027-01-15T10:00:00Z');

const REPORT: ReconcileShape = {
  namespaces: 2,
  visited: 1_250,
  reclaimed: 1_000,
  healed: 1,
  merged: 0,
  unmarked: 50,
  busy: 0,
  failed: 0,
  failures: [],
  complete: true,
  durationMs: 1_234,
};

const FAILED: ReconcileShape = {
  ...REPORT,
  failed: 3,
  failures: [{ namespace: 'default', bucket: 'sly\u001B[2J#gpt-4', reason: 'some of its shards are missing' }],
};

test('the report of one sweep has a line for each count', () => {
  expect(renderReport(REPORT, PLAIN)).toMatchInlineSnapshot(`
    "reconciled in 1.3 s
    namespaces        2
    buckets visited   1,250
    leases reclaimed  1,000
    limits repaired   1
    shards merged     0
    buckets unlisted  50
    left for later    0
    failed            0"
  `);
});

test('the report names each failure, with control characters escaped', () => {
  const text = renderReport(FAILED, PLAIN);
  expect(text).toMatch(/^reconciled in part in 1\.3 s\n/);
  expect(text).toMatch(/\n {2}default sly\\u001b\[2J#gpt-4: some of its shards are missing\n {2}and 2 more$/);
});

test('the report of --watch is one line with the counts above zero, and one for each failure', () => {
  expect(renderReportLine(REPORT, AT, PLAIN)).toBe(
    '2027-01-15 10:00:00Z  buckets visited 1,250, leases reclaimed 1,000, limits repaired 1, buckets unlisted 50 (1.3 s)',
  );
  expect(renderReportLine(FAILED, AT, PLAIN).split('\n')).toHaveLength(3);
});
