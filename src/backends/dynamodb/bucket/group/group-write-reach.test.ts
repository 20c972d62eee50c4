import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drive, type Maintenance } from '../../../../../tests/support/dynamodb/group/drive-group.js';
import {
  expectLanding,
  expectMaintenance,
  expectToldIsStored,
} from '../../../../../tests/support/dynamodb/group/landing-account.js';
import {
  amount,
  askEntry,
  extendEntry,
  holderOf,
  imageOf,
  levelOf,
  NOW_MS,
  withHolders,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { type WideScenario, wideScenarios } from '../../../../../tests/support/dynamodb/group/wide-scenarios.js';
import { runs, runsAll } from '../../../../../tests/support/runs.js';
import { MAX_OPEN_LEASES } from '../../../../core/bucket/traces.js';
import { compareVersions } from '../../../../core/config/config.js';
import { Limit } from '../../../../core/limit.js';
import type { OperationEntry } from './entries.js';

const RPM = Limit.perMinute('rpm', 60);

/** Every kind of action, of answer and of outcome. `crowded` has a test of its own: a thousand holders are slow to draw. */
const EVERYTHING: readonly string[] = [
  'send create',
  'send group',
  'send maintain',
  'send add-ttl',
  'read to find',
  'read to maintain',
  'read to prove',
  'settle-all',
  'pause',
  'done',
  'done, forget',
  'maintained: settle',
  'maintained: rebase',
  'maintained: reclaim',
  'answered read',
  'answered read, no record',
  'answered sent, written',
  'answered sent, refused',
  'answered refused, no record',
  'answered conflict',
  'answered throttled',
  'answered no-answer',
  'answered unsent',
  'answered sent, failed',
  'answered settled all',
  'answered not settled all',
  'answered paused',
  'answered out-of-time',
  'answered failed',
  'told granted',
  'told denied',
  'told unheld',
  'told id-taken',
  'told contended',
  'told no-shard',
  'told done',
  'told extended',
  'told operated',
  'told ended',
  'told refund lost',
  'told error',
  'told deferred',
];

const RUNS = { numRuns: runs(16_000) };

/**
 * The ids of leases are unique: an ask with a holder draws one that no other entry and no record has. The totals of a
 * portable lease change by operations only.
 */
function realistic({ truth, cached, entries }: WideScenario): WideScenario['entries'] {
  const holdersOf = (leaseId: string | null) =>
    [truth, cached.image].flatMap((image) => image?.holders.get(leaseId ?? '') ?? []);
  return entries.filter((entry) => {
    if (entry.kind === 'change' && entry.level.refundsOnExpiry === true) {
      const becomesPortable = entries.some(({ kind, leaseId }) => kind === 'operation' && leaseId === entry.leaseId);
      return !becomesPortable && holdersOf(entry.leaseId).every(({ portable }) => portable === undefined);
    }
    if (entry.kind !== 'ask' || entry.level.holder === null) return true;
    return holdersOf(entry.leaseId).length === 0 && entries.filter((one) => one.leaseId === entry.leaseId).length === 1;
  });
}

function purposeOf({ before, after }: Maintenance): string {
  if (before.baseMs === after.baseMs) return 'reclaim';
  return compareVersions(before.version, after.version) === 0 ? 'rebase' : 'settle';
}

describe('the steps of a group write, whatever is stored and cached', () => {
  test('every write changes the record as its results say, and every answer is true', () => {
    const reached = new Set<string>();
    fc.assert(
      fc.property(wideScenarios, (drawn) => {
        const scenario = { ...drawn, entries: realistic(drawn) };
        const { truth, cached, entries, history, others } = scenario;
        if (entries.length === 0) return;
        const driven = drive(truth, cached.image, entries, history, { ...cached, others });
        expect(driven.told.filter((one) => one !== undefined)).toHaveLength(entries.length);
        // A young image, or one from before a foreign refund, may deny what the record has when the write lands.
        const mayDenyEarly = cached.trust === 'young' || driven.foreignWrites > 0;
        for (const landing of driven.landings) {
          expectLanding(landing, { mayDenyEarly });
          for (const [index, entry] of entries.entries()) {
            if (entry.kind !== 'change' || landing.isCreation || (landing.results.get(index) ?? null) === null)
              continue;
            // Writes that are planned on this base must not land after the change.
            if (entry.fences !== undefined) expect(landing.before.baseMs).not.toBe(entry.fences);
          }
        }
        for (const one of driven.maintenance) {
          expectMaintenance(one);
          reached.add(`maintained: ${purposeOf(one)}`);
        }
        expectToldIsStored(scenario, driven);
        for (const one of driven.reached) reached.add(one);
      }),
      RUNS,
    );
    if (runsAll) expect([...reached].toSorted()).toEqual(EVERYTHING.toSorted());
  }, 600_000);

  test('a cached absence answers no operation of a portable lease: another process may have created its holder', () => {
    const portable = { state: 'open', taken: [amount('rpm', 1_000)], adjusts: [] } as const;
    const truth = withHolders(imageOf([RPM]), { 'other-lease': { rates: null, portable } });
    const level = {
      ...levelOf([RPM]),
      kind: 'operation',
      operation: { kind: 'commit', totals: [] },
      dueIfLost: [],
    } as const;
    const commit: OperationEntry = { kind: 'operation', level, leaseId: 'other-lease', nowMs: NOW_MS };
    const entries = [commit, extendEntry('other-lease-2', NOW_MS + 1_000)];
    const { told, final } = drive(truth, null, entries, [], { trust: 'young', isAbsent: true });
    expect(told).toMatchObject([
      { kind: 'operated', part: { taken: [{ name: 'rpm', milli: 1_000 }] } },
      { found: false },
    ]);
    expect(final?.holders.get('other-lease')).toMatchObject({ portable: { state: 'committed' } });
  });

  test('a proof does not tell an operation that its holder is lost if a write that found the holder may have landed', () => {
    const portable = { state: 'open', taken: [], adjusts: [] } as const;
    const truth = withHolders(imageOf([RPM]), { 'other-lease': { rates: null, portable } });
    const operation = { kind: 'settle', totals: [amount('rpm', 2_000)] } as const;
    const level = { ...levelOf([RPM]), kind: 'operation', operation, dueIfLost: [] } as const;
    const settle: OperationEntry = { kind: 'operation', level, leaseId: 'other-lease', nowMs: NOW_MS };
    const ask = askEntry([RPM], { rpm: 1_000 }, { leaseId: 'mine', holder: holderOf() });
    const { told, landings } = drive(
      truth,
      null,
      [settle, ask],
      [
        // A creation gets no answer, and would have found no holder.
        { event: 'lost, not landed', foreign: 'none' },
        { event: 'answered', foreign: 'none' },
        // The write that is planned on the stored item lands, and its repetition is refused: the holder of the ask is shown.
        { event: 'sent twice', foreign: 'rebase' },
      ],
    );
    expect(landings[0]?.results.get(0)).toMatchObject({ part: { taken: [{ name: 'rpm', milli: 2_000 }] } });
    // It is planned again, which does not count twice.
    expect(told).toMatchObject(['deferred', { kind: 'granted' }]);
  });

  test('a shard with as many holders as it may have beside a portable lease answers that it is crowded', () => {
    const crowd = Object.fromEntries(Array.from({ length: MAX_OPEN_LEASES }, (_, at) => [`lease-${at}`, {}]));
    const truth = withHolders(imageOf([RPM]), crowd);
    const holder = holderOf({ portable: { state: 'open', taken: [amount('rpm', 1_000)], adjusts: [] } });
    const { told } = drive(truth, truth, [askEntry([RPM], { rpm: 1_000 }, { leaseId: 'mine', holder })], []);
    expect(told).toMatchObject([{ kind: 'crowded' }]);
  });
});
