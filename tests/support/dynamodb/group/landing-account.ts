import { expect } from 'vitest';
import type { Entry, EntryResult } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import type { Amount } from '../../../../src/core/bucket/decide.js';
import { deltasOf } from '../../../../src/core/bucket/holder-rules.js';
import { accountOf, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { worthOf } from '../../../oracle/model.js';
import { SequentialModel } from '../../models/sequential-model.js';
import type { Driven, Landing, Maintenance } from './drive-group.js';
import { kindsOf } from './same-as-model.js';
import { NOW_MS } from '../shard/shard-images.js';
import { isResult } from './told-account.js';
import type { WideScenario } from './wide-scenarios.js';

/**
 * Expects that a write of the group has changed the record as its results say, to the millitoken. A write that leaves
 * refunds out may only leave less: fewer tokens, more consumption.
 */
export function expectLanding(landing: Landing, { mayDenyEarly }: { readonly mayDenyEarly: boolean }): void {
  const { before, after, entries, withRefunds } = landing;
  const results = entries.map((entry, index) => {
    const result = landing.results.get(index) ?? null;
    // A dry run takes nothing, and its caller asks the store again.
    const isDryRun = entry.kind === 'ask' && entry.dryRun === true;
    return isDryRun || (mayDenyEarly && refusesAsk(result)) ? null : result;
  });
  const model = new SequentialModel(before, NOW_MS);
  const expected = model.run(entries, results, []);
  const told = kindsOf(results);
  // Neither promises anything: a refund that is left out, and an ask that is refused because its config is older.
  const isOpen = (kind: unknown): boolean => kind === 'refund-left-out' || kind === 'unheld';
  expect(told).toEqual(kindsOf(expected).map((kind, at) => (isOpen(told[at]) && kind !== 'granted' ? told[at] : kind)));
  const accounts = (image: ShardImage) => image.limits.map(({ limit }) => limit);
  expect(
    accounts(after)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(
    accounts(before)
      .map(({ name }) => name)
      .toSorted(),
  );
  for (const { limit, rate, tokensMilli, consumedMilli } of after.limits) {
    const { name, kind } = limit;
    const worth = kind === 'unlimited' ? 0n : worthOf(rate, tokensMilli, after.baseMs, NOW_MS);
    const counted = BigInt(consumedMilli) - BigInt(accountOf(before, name)!.consumedMilli);
    const [tokens, consumed] = [model.tokens.get(name)!, model.consumed.get(name) ?? 0n];
    if (withRefunds) expect([name, worth, counted]).toEqual([name, tokens, consumed]);
    else {
      expect(worth <= tokens).toBe(true);
      expect(counted >= consumed).toBe(true);
    }
  }
  expectSameHolders(after, model);
  if (withRefunds) expect(after.acquires - before.acquires).toBe(model.acquires);
  else expect(after.acquires - before.acquires).toBeGreaterThanOrEqual(model.acquires);
}

function refusesAsk(result: EntryResult | null): boolean {
  return result !== null && ['denied', 'id-taken', 'unheld', 'crowded'].includes(result.kind);
}

/** Expects that a reclaim gave back what expired holders held, and removed no other holder. A settlement keeps all. */
export function expectMaintenance({ before, after }: Maintenance): void {
  const removed = [...before.holders.keys()].filter((id) => !after.holders.has(id));
  if (before.baseMs !== after.baseMs) {
    expect(removed).toEqual([]);
    for (const { limit, consumedMilli } of after.limits) {
      const consumedBefore = accountOf(before, limit.name)?.consumedMilli ?? before.retired.get(limit.name);
      if (limit.kind !== 'concurrent' && consumedBefore !== undefined) {
        expect([limit.name, BigInt(consumedMilli)]).toEqual([limit.name, BigInt(consumedBefore)]);
      }
    }
    return;
  }
  const model = new SequentialModel(before, NOW_MS);
  model.run([], [], removed);
  for (const { limit, rate, tokensMilli } of after.limits) {
    if (limit.kind === 'unlimited') continue;
    expect([limit.name, worthOf(rate, tokensMilli, after.baseMs, NOW_MS)]).toEqual([
      limit.name,
      model.tokens.get(limit.name),
    ]);
  }
  expect(after.expired - before.expired).toBe(model.expired);
  expectSameHolders(after, model);
}

function expectSameHolders(after: ShardImage, model: SequentialModel): void {
  const byName = (amounts: readonly Amount[]) => amounts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const shown = ([id, { expiresAtMs, slots, rates, portable }]: readonly [string, Shown]) => {
    const { taken = [], forParents = [] } = portable ?? {};
    const part = portable && { ...portable, taken: byName(taken), forParents: byName(forParents) };
    return [id, { expiresAtMs, slots, rates: rates && byName(rates), portable: part }] as const;
  };
  expect(new Map([...after.holders].map(shown))).toEqual(new Map([...model.holders].map(shown)));
}

type Shown = SequentialModel['holders'] extends ReadonlyMap<string, infer H> ? H : never;

/** Expects that what a caller was told is stored: by a write that landed, or by the record at some moment. */
export function expectToldIsStored({ entries }: WideScenario, { told, landings, moments }: Driven): void {
  const everHeld = (leaseId: string, isSo: (holder: Holder | undefined) => boolean): boolean =>
    moments.some((image) => isSo(image?.holders.get(leaseId)));
  const hasRefunds = entries.some((entry) => entry.kind === 'change' || entry.kind === 'operation');
  for (const [index, one] of told.entries()) {
    const entry = entries[index]!;
    const { leaseId } = entry;
    if (!isResult(one)) continue;
    const isLanded = landings.some(({ results }) => results.get(index)?.kind === one.kind);
    switch (one.kind) {
      case 'granted': {
        if (entry.kind !== 'ask' || entry.dryRun === true) break;
        const takes = one.answer.verdicts.some(({ requestedMilli, waitMs }) => requestedMilli > 0 && waitMs === 0);
        // Without a holder, a refund in the same group may cancel the ask, and nothing is written.
        if (entry.level.holder !== null || (takes && !hasRefunds)) expect(isLanded).toBe(true);
        break;
      }
      case 'extended':
        if (one.found) expect(isLanded || everHeld(leaseId ?? '', (holder) => holder !== undefined)).toBe(true);
        else expect(everHeld(leaseId ?? '', (holder) => holder === undefined)).toBe(true);
        break;
      case 'operated':
        expect(everHeld(leaseId ?? '', (holder) => (holder === undefined) === (one.part === null))).toBe(true);
        break;
      case 'ended':
        expect(everHeld(leaseId ?? '', (holder) => holder?.portable?.state === one.state)).toBe(true);
        break;
      case 'done':
        if (one.holderLost && entry.kind === 'change' && entry.onlyIfHeld !== true) {
          expect(everHeld(leaseId ?? '', (holder) => holder === undefined)).toBe(true);
        }
        if (takesAlone(entries, index, moments)) expect(isLanded).toBe(true);
        break;
      case 'no-shard':
        expect(moments.includes(null)).toBe(true);
        break;
      case 'denied':
      case 'unheld':
      case 'crowded':
      case 'id-taken':
      case 'contended':
      case 'refund-left-out':
        break;
    }
  }
}

type Holder = ShardImage['holders'] extends ReadonlyMap<string, infer H> ? H : never;

/** Whether an entry takes more of a limit that the record always had, and no other entry may cancel that. */
function takesAlone(entries: readonly Entry[], index: number, moments: readonly (ShardImage | null)[]): boolean {
  const changes = entries.filter(({ kind }) => kind === 'change' || kind === 'operation');
  const [only] = changes;
  if (changes.length !== 1 || only !== entries[index] || only?.kind !== 'change') return false;
  if (only.onlyIfHeld === true || only.level.refundsOnExpiry === true) return false;
  return deltasOf(only.level).some(
    ({ name, milli }) =>
      milli > 0 &&
      moments.every((image) => {
        const kind = image === null ? undefined : accountOf(image, name)?.limit.kind;
        return kind === 'rate' || kind === 'unlimited';
      }),
  );
}
