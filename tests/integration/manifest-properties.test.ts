import fc from 'fast-check';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Backend } from '../../src/backend.js';
import { file } from '../../src/backends/embedded/file/file.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { isHeadgateError } from '../../src/core/errors.js';
import { defaultsOf, type Fields, fieldsOfManifest, sameField } from '../../src/core/manifest/managed-fields.js';
import { parseManagedKey } from '../../src/core/manifest/managed.js';
import { type ManifestData, readManifest } from '../../src/core/manifest/manifest.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { logicalState, marksOf, objectsOf } from '../support/models/logical-state.js';
import { manualChanges, manifestData, perform } from '../support/models/random-manifest.js';
import { runs, runsAll } from '../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-manifests-'));
let files = 0;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const STORES: readonly (readonly [name: string, runs: number, open: () => Backend])[] = [
  ['memory', runs(400), () => memory()],
  ['file', runs(60), () => file({ path: join(folder, `${files++}.db`) })],
];

/** Applies the manifest. A refused manifest must not change the store. */
async function applied(backend: Backend, limiter: RateLimiter, data: ManifestData): Promise<boolean> {
  const before = await logicalState(backend);
  try {
    await limiter.manifest.apply(data);
    return true;
  } catch (error) {
    // The plan must find the problem: a store that refuses a change would cause another class of error.
    expect(error).toMatchObject({ name: 'ValidationError' });
    expect(isHeadgateError(error, 'input.invalid')).toBe(true);
    expect(await logicalState(backend)).toEqual(before);
    return false;
  }
}

const NOTHING = { changes: [], drift: [] };

/** What a file wants: a pause that has ended is not named. `paused` of such a record: left alone if it was changed by hand. */
function wantedBy(data: ManifestData): { readonly wanted: Map<string, Fields>; readonly spared: Set<string> } {
  const spared = new Set<string>();
  const hasEnded = ({ paused }: Fields): boolean =>
    typeof paused === 'object' &&
    paused !== null &&
    'until' in paused &&
    Date.parse(String(paused.until)) <= Date.now();
  const wanted = new Map(
    [...fieldsOfManifest(readManifest(data))].map(([key, fields]) => {
      const { paused: _paused, ...others } = fields;
      if (!hasEnded(fields)) return [key, fields] as const;
      spared.add(key);
      return [key, others] as const;
    }),
  );
  return { wanted, spared };
}

/** The expected value of a field: that of the file, or unset if the file owned it, or the previous one. */
function expectedField(
  key: string,
  name: string,
  views: {
    readonly wanted: Fields | undefined;
    readonly owned: Fields | undefined;
    readonly before: Fields | undefined;
  },
): unknown {
  const { wanted, owned, before } = views;
  const unset = defaultsOf(parseManagedKey(key)!)[name];
  if (wanted !== undefined && name in wanted) return wanted[name];
  if (owned !== undefined && name in owned) return unset;
  return before === undefined ? unset : before[name];
}

describe.each(STORES)('manifests on a %s store', (_, numRuns, open) => {
  test('a plan is empty after an apply, whatever was stored and changed by hand before', async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(manualChanges, manifestData, manualChanges, manifestData, async (early, first, late, second) => {
        const backend = open();
        const limiter = await RateLimiter.open(backend);
        await perform(limiter, early);
        if (await applied(backend, limiter, first)) {
          expect(await limiter.manifest.plan(first)).toMatchObject(NOTHING);
        }
        await perform(limiter, late);
        if (await applied(backend, limiter, second)) {
          accepted += 1;
          const state = await logicalState(backend);
          expect(await limiter.manifest.plan(second)).toMatchObject(NOTHING);
          await limiter.manifest.apply(second);
          expect(await logicalState(backend)).toEqual(state);
        }
        await limiter.close();
      }),
      { numRuns },
    );
    if (runsAll) expect(accepted).toBeGreaterThan(numRuns / 4);
  });

  test('after an apply every field has the value of the file, or none if the file owned it, or its previous value', async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(manifestData, manualChanges, manifestData, async (first, byHand, second) => {
        const backend = open();
        const limiter = await RateLimiter.open(backend);
        await applied(backend, limiter, first);
        await perform(limiter, byHand);
        const [before, owned] = [await objectsOf(backend), await marksOf(backend)];
        if (!(await applied(backend, limiter, second))) return limiter.close();
        accepted += 1;
        const [after, { wanted, spared }] = [await objectsOf(backend), wantedBy(second)];
        expect(await marksOf(backend)).toEqual(new Map([...wanted].toSorted(([a], [b]) => (a < b ? -1 : 1))));
        for (const key of new Set([...before.keys(), ...wanted.keys(), ...owned.keys(), ...after.keys()])) {
          const views = { wanted: wanted.get(key), owned: owned.get(key), before: before.get(key) };
          const { paused, ...others } = views.owned ?? {};
          const isByHand = !sameField('paused', paused, views.before?.['paused']);
          if (spared.has(key) && views.owned !== undefined && isByHand) views.owned = others;
          const defaults = defaultsOf(parseManagedKey(key)!);
          const expected = Object.keys(defaults).map((name) => [name, expectedField(key, name, views)] as const);
          const isUnset = expected.every(([name, value]) => sameField(name, value, defaults[name]));
          const neverOwned = views.wanted === undefined && views.owned === undefined;
          const stays = neverOwned ? views.before !== undefined : views.wanted !== undefined || !isUnset;
          expect(after.has(key), key).toBe(stays);
          for (const [name, value] of stays ? expected : []) {
            expect(sameField(name, after.get(key)?.[name], value), `${name} of ${key}`).toBe(true);
          }
        }
        await limiter.close();
      }),
      { numRuns },
    );
    if (runsAll) expect(accepted).toBeGreaterThan(numRuns / 4);
  });

  test('the plan of an export is empty, and applying it to an empty store gives the same objects', async () => {
    await fc.assert(
      fc.asyncProperty(manifestData, manualChanges, async (data, byHand) => {
        const [backend, other] = [open(), open()];
        const limiter = await RateLimiter.open(backend);
        await applied(backend, limiter, data);
        await perform(limiter, byHand);
        const exported = await limiter.manifest.export();
        expect(await limiter.manifest.plan(exported)).toMatchObject(NOTHING);
        const copy = await RateLimiter.open(other);
        await copy.manifest.apply(exported);
        expect(await objectsOf(other)).toEqual(await objectsOf(backend));
        expect(await copy.manifest.export()).toEqual(exported);
        await limiter.close();
        await copy.close();
      }),
      { numRuns },
    );
  });

  test('a plan writes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(manifestData, manualChanges, manifestData, async (first, byHand, second) => {
        const backend = open();
        const limiter = await RateLimiter.open(backend);
        await applied(backend, limiter, first);
        await perform(limiter, byHand);
        const before = await logicalState(backend);
        await limiter.manifest.plan(second).catch(() => {});
        await limiter.manifest.export();
        expect(await logicalState(backend)).toEqual(before);
        await limiter.close();
      }),
      { numRuns: Math.ceil(numRuns / 4) },
    );
  });
});
