import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { type Fields, sameField } from '../../src/core/manifest/managed-fields.js';
import type { ManifestData } from '../../src/core/manifest/manifest.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { checkIntegrity } from '../support/file/file-rows.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';
import { marksOf, objectsOf } from '../support/models/logical-state.js';

const limits = (...texts: string[]) => ({ limits: texts });

/** The manifest that was applied before. */
const OLD: ManifestData = {
  namespace: 'default',
  system: { onUnavailable: 'local', limits: ['rpm:1/min'] },
  resources: { kept: limits('rpm:1/min'), changed: limits('rpm:1/min'), dropped: limits('rpm:1/min') },
  entities: {
    top: { name: 'Top' },
    below: { parent: 'top', default: limits('rpm:1/min'), resources: { kept: limits('rpm:1/min') } },
    leaf: { parent: 'below', cascade: true, metadata: { a: 1 } },
    old: { resources: { kept: limits('rpm:1/min') } },
    older: { parent: 'top' },
    oldest: { parent: 'older' },
    shared: { name: 'Shared' },
  },
};

/**
 * The apply that is killed. It creates, changes and deletes objects, reverses a tree, and adopts and releases fields.
 */
const NEW: ManifestData = {
  namespace: 'default',
  system: { limits: ['rpm:2/min'] },
  resources: {
    kept: limits('rpm:1/min'),
    changed: limits('rpm:2/min', 'slots:2/concurrent'),
    adopted: limits('rpm:9/min'),
  },
  entities: {
    leaf: { name: 'Now on top', metadata: { b: [2] } },
    below: { parent: 'leaf', default: limits('rpm:2/min') },
    top: { name: 'Top', parent: 'below' },
    fresh: { parent: 'top', cascade: true, default: limits('rpm:3/min'), resources: { kept: limits('rpm:4/min') } },
    bare: null,
    stranger: { name: 'Found' },
  },
};

/** The file after an edit between the killed apply and the next one. */
const EDITED: ManifestData = {
  namespace: 'default',
  system: { onUnavailable: 'block' },
  resources: { changed: limits('rpm:5/min') },
  entities: { top: { name: 'Top' }, fresh: { parent: 'stranger' }, leaf: { parent: 'top' }, oldest: {} },
};

const folder = mkdtempSync(join(tmpdir(), 'headgate-apply-'));
/** Concurrent children. They spend most of their time on the start. */
const AT_ONCE = 3;
let start: Awaited<ReturnType<typeof forkable>>;

beforeAll(async () => {
  start = await forkable(new URL('./apply-child.ts', import.meta.url));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Applies the manifests one after the other to a file with manual changes, and returns its path. */
async function prepared(name: string, ...manifests: readonly ManifestData[]): Promise<string> {
  const path = join(folder, `${name}.db`);
  await using limiter = await RateLimiter.open(file({ path }));
  await limiter.entities.create({ id: 'stranger', name: 'Found', metadata: { by: 'hand' } });
  await limiter.config.setResource('adopted', { limits: [Limit.perMinute('rpm', 9)] });
  await limiter.config.setEntityDefault('stranger', { limits: [Limit.perMinute('rpm', 8)] });
  for (const manifest of manifests) await limiter.manifest.apply(manifest);
  await limiter.entities.update('shared', { metadata: { by: 'hand' } }).catch(() => {});
  return path;
}

interface State {
  readonly objects: ReadonlyMap<string, Fields>;
  readonly marks: ReadonlyMap<string, Fields>;
}

async function stateOf(path: string): Promise<State> {
  const backend = file({ path });
  await using limiter = await RateLimiter.open(backend);
  await limiter.ping();
  return { objects: await objectsOf(backend), marks: await marksOf(backend) };
}

/** The objects that, with their marks, are neither as in `before` nor as in `after`. */
function torn({ objects, marks }: State, before: State, after: State): string[] {
  const keys = new Set([before, after].flatMap((state) => [...state.objects.keys(), ...state.marks.keys()]));
  const pair = (state: State, key: string): string => JSON.stringify([state.objects.get(key), state.marks.get(key)]);
  const found = [...keys].filter((key) => {
    const is = JSON.stringify([objects.get(key), marks.get(key)]);
    return is !== pair(before, key) && is !== pair(after, key);
  });
  const strangers = [...objects.keys(), ...marks.keys()].filter((key) => !keys.has(key));
  return [...found, ...strangers];
}

/** The fields that differ from their marks. */
function unfounded({ objects, marks }: State): string[] {
  return [...marks].flatMap(([key, fields]) =>
    Object.entries(fields)
      .filter(([name, value]) => !sameField(name, value, objects.get(key)?.[name]))
      .map(([name]) => `${name} of ${key}`),
  );
}

function copyTo(path: string, copy: string): string {
  for (const part of ['', '-wal']) if (existsSync(path + part)) copyFileSync(path + part, copy + part);
  return copy;
}

function remove(...paths: readonly string[]): void {
  for (const path of paths) for (const part of ['', '-wal', '-shm']) rmSync(path + part, { force: true });
}

async function applyAll(path: string, manifest: ManifestData): Promise<State> {
  await using limiter = await RateLimiter.open(file({ path }));
  await limiter.manifest.apply(manifest);
  expect(await limiter.manifest.plan(manifest)).toMatchObject({ changes: [], drift: [] });
  return await stateOf(path);
}

test(
  'after an apply that is killed before any of its statements, the next apply makes the other changes, also of an edited file',
  {
    timeout: 240_000,
  },
  async () => {
    const base = await prepared('base', OLD);
    const before = await stateOf(base);
    const whole = copyTo(base, join(folder, 'whole.db'));
    const after = await applyAll(whole, NEW);
    // The edited file does not name the objects that the killed apply had already adopted, so they are removed.
    const edited = await applyAll(copyTo(base, join(folder, 'edited.db')), EDITED);
    const editedLater = await applyAll(copyTo(whole, join(folder, 'edited-later.db')), EDITED);
    expect([unfounded(before), unfounded(after), torn(before, before, after), torn(after, before, after)]).toEqual([
      [],
      [],
      [],
      [],
    ]);

    const startMs = performance.now();
    const seen = new Set<string>();
    let next = 1;
    let survived = Number.POSITIVE_INFINITY;
    const work = async (): Promise<void> => {
      while (next < survived) {
        const statement = next++;
        const path = copyTo(base, join(folder, `${statement}.db`));
        const exit = await ended(start(path, JSON.stringify(NEW), String(statement)));
        if (exit === 0) survived = Math.min(survived, statement);
        else {
          expect(exit).toBe('SIGKILL');
          const other = copyTo(path, join(folder, `${statement}-edited.db`));
          const left = await stateOf(path);
          seen.add(JSON.stringify([[...left.objects], [...left.marks]]));
          expect([torn(left, before, after), unfounded(left)], `killed before statement ${statement}`).toEqual([
            [],
            [],
          ]);
          expect(await applyAll(path, NEW), `applied again after statement ${statement}`).toEqual(after);
          const result = await applyAll(other, EDITED);
          expect(torn(result, edited, editedLater), `edited after statement ${statement}`).toEqual([]);
          expect(await checkIntegrity(path)).toBe('ok');
          remove(other);
        }
        remove(path);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const changes = [...after.objects.keys(), ...before.objects.keys()].length;
    // Each change leaves a different state, and each adoption another one.
    expect(seen.size).toBeGreaterThan(15);
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
    console.log(
      `apply: killed before each of ${survived - 1} statements, ${seen.size} states left behind (${changes} objects), in ${seconds} s`,
    );
  },
);

test('concurrent applies of one file by several processes have the result of one apply', async () => {
  const base = await prepared('many-base', OLD);
  const after = await applyAll(copyTo(base, join(folder, 'many-whole.db')), NEW);
  const exits = await Promise.all(Array.from({ length: 4 }, () => ended(start(base, JSON.stringify(NEW)))));
  expect(exits).toEqual([0, 0, 0, 0]);
  expect(await stateOf(base)).toEqual(after);
});

test('whatever concurrent applies of two files leave, the next apply corrects it', async () => {
  for (let round = 0; round < 4; round++) {
    const path = await prepared(`two-${round}`, OLD);
    // Either apply may stop with an error, because the other one deleted a parent.
    await Promise.all([NEW, EDITED].map((manifest) => ended(start(path, JSON.stringify(manifest)))));
    expect(unfounded(await stateOf(path))).toEqual([]);
    const edited = await applyAll(await prepared(`two-${round}-alone`, OLD), EDITED);
    const editedLater = await applyAll(await prepared(`two-${round}-after`, OLD, NEW), EDITED);
    expect(torn(await applyAll(path, EDITED), edited, editedLater)).toEqual([]);
  }
});
