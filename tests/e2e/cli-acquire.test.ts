import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AcquireShape } from '../../src/cli/commands/inspect/acquire-shapes.js';
import type { BucketViewShape } from '../../src/cli/commands/inspect/bucket.js';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { runCli } from '../support/cli/run-cli.js';

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

async function acquire(address: string, ...args: readonly string[]): Promise<AcquireShape & { exitCode: number }> {
  const run = await runCli(['acquire', 'user-1', 'gpt-4', ...args, '--store', address, '--json']);
  return { ...(JSON.parse(run.stdout) as AcquireShape), exitCode: run.exitCode };
}

/** The printed limits of each level as rows: entity, limit, before, asked, after, exceeded. */
function rows({ levels }: AcquireShape): readonly (readonly unknown[])[] {
  return levels.flatMap(({ entityId, limits }) =>
    limits.map(({ limit, before, asked, after, exceeded }) => [entityId, limit, before, asked, after, exceeded]),
  );
}

test('acquire explains a grant level by level: slots are given back, rates stay spent', async () => {
  const address = store.copy();
  const explained = await acquire(address, '-c', 'rpm=3', '-c', 'slots=1');
  expect(explained).toMatchObject({ granted: true, exitCode: 0, lease: { state: 'committed', expiresAt: null } });
  expect(explained.levels.map(({ configSource }) => configSource)).toEqual(['entity', 'resource']);
  expect(rows(explained).filter(([, limit]) => limit !== 'tpm:1000/day')).toEqual([
    ['user-1', 'rpm:10/day', 8, 3, 5, false],
    ['user-1', 'slots:2/concurrent', 1, 1, 1, false],
    ['proj-1', 'rpm:60/day', 58, 3, 55, false],
    ['proj-1', 'slots:4/concurrent', 3, 1, 3, false],
  ]);
  const again = await acquire(address, '-c', 'rpm=1', '--dry-run');
  expect(rows(again)).toContainEqual(['user-1', 'rpm:10/day', 5, 1, 4, false]);
  expect(rows(again)).toContainEqual(['user-1', 'slots:2/concurrent', 1, null, 1, false]);
});

test('an unlimited limit is shown as asked, without a balance, and its bucket counts it', async () => {
  const address = store.copy();
  const set = ['entity', 'set', 'user-1', '--resource', 'gpt-4', '-l', 'rpm:unlimited', '--store', address];
  expect(await runCli(set)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('rpm:unlimited') });
  await runCli(['entity', 'set', 'proj-1', '--resource', 'gpt-4', '-l', 'rpm:unlimited', '--store', address]);
  const explained = await acquire(address, '-c', 'rpm=5000');
  expect(explained).toMatchObject({ granted: true, exitCode: 0 });
  expect(rows(explained)).toContainEqual(['user-1', 'rpm:unlimited', null, 5_000, null, false]);
  const looked = await acquire(address, '-c', 'rpm=5000', '--dry-run');
  expect(rows(looked)).toContainEqual(['user-1', 'rpm:unlimited', null, 5_000, null, false]);
  const shown = await runCli(['bucket', 'show', 'user-1', 'gpt-4', '--store', address, '--json']);
  const { bucket } = JSON.parse(shown.stdout) as BucketViewShape;
  // Two tokens were taken before the limit became unlimited.
  expect(bucket?.limits).toContainEqual({ limit: 'rpm:unlimited', available: null, consumed: 5_002 });
  const printed = await runCli(['acquire', 'user-1', 'gpt-4', '-c', 'rpm=1', '--store', address]);
  expect(printed.stdout).toMatch(/^✓ {2}rpm:unlimited +1 *$/m);
  expect((await runCli([...set.slice(0, 5), '-l', 'rpm:100', '--store', address])).exitCode).toBe(3);
});

test('a denied acquire names the level that refused and its wait, and takes nothing at any level', async () => {
  const address = store.copy();
  await runCli(['entity', 'set', 'proj-1', '--resource', 'gpt-4', '-l', 'rpm:60/day:4', '--store', address]);
  await runCli(['acquire', 'proj-1', 'gpt-4', '-c', 'rpm=2', '--store', address]);
  const denied = await acquire(address, '-c', 'rpm=4');
  expect(denied).toMatchObject({ granted: false, exitCode: 10, reason: 'exhausted', lease: null });
  expect(denied.retryAfterMs).toBeGreaterThan(0);
  expect(rows(denied).filter(([, , , asked]) => asked !== null)).toEqual([
    ['user-1', 'rpm:10/day', 8, 4, 8, false],
    ['proj-1', 'rpm:60/day:4', 2, 4, 2, true],
  ]);
  const looked = await acquire(address, '-c', 'rpm=4', '--dry-run');
  expect(looked).toMatchObject({ granted: false, dryRun: true, exitCode: 10, reason: 'exhausted' });
  expect(rows(looked)).toEqual(rows(denied));
});

test('an acquire that can never fit exits with 11, also as a dry run', async () => {
  const address = store.copy();
  const impossible = { granted: false, reason: 'impossible', retryAfterMs: null, exitCode: 11 };
  expect(await acquire(address, '-c', 'rpm=11')).toMatchObject(impossible);
  expect(await acquire(address, '-c', 'rpm=11', '--dry-run')).toMatchObject({ ...impossible, dryRun: true });
});

test('acquire --hold keeps the slots under the name of the caller until the lease expires', async () => {
  const address = store.copy();
  const held = await acquire(address, '-c', 'slots=1', '--hold', '--lease-ttl', '2hour', '--principal', 'carol');
  expect(held.lease).toMatchObject({ state: 'held', expiresAt: expect.stringMatching(/Z$/) });
  expect(rows(held)).toContainEqual(['user-1', 'slots:2/concurrent', 1, 1, 0, false]);
  const { stdout } = await runCli(['leases', 'list', 'user-1', 'gpt-4', '--json', '--store', address]);
  const { items } = JSON.parse(stdout) as { items: { id: string; caller: string; expiresAt: string }[] };
  expect(items).toContainEqual(
    expect.objectContaining({ id: held.lease?.id, caller: 'carol', expiresAt: held.lease?.expiresAt }),
  );
  expect(await acquire(address, '-c', 'slots=1')).toMatchObject({ granted: false, exitCode: 10 });
});

test('leases release ends a held lease by its id, and its slots can be taken again', async () => {
  const address = store.copy();
  const held = await acquire(address, '-c', 'slots=1', '--hold', '--lease-ttl', '2hour');
  const release = async () => {
    const { stdout } = await runCli(['leases', 'release', held.lease?.id ?? '', '--yes', '--json', '--store', address]);
    return JSON.parse(stdout) as unknown;
  };
  expect(await release()).toEqual({ released: true });
  expect(await release()).toEqual({ released: false });
  expect(await acquire(address, '-c', 'slots=1')).toMatchObject({ granted: true });
});

test('acquire -l uses its own bucket, and the limits of the parent still apply', async () => {
  const address = store.copy();
  const own = ['-l', 'rpm:5/day', '-l', 'tpm:100/day'];
  const first = await acquire(address, '-c', 'rpm=5', ...own);
  expect(first.levels.map(({ configSource }) => configSource)).toEqual(['call', 'resource']);
  expect(rows(first)).toEqual([
    ['user-1', 'rpm:5/day', 5, 5, 0, false],
    ['user-1', 'tpm:100/day', null, null, null, false],
    ['proj-1', 'rpm:60/day', 58, 5, 53, false],
    ['proj-1', 'slots:4/concurrent', null, null, null, false],
  ]);
  expect(await acquire(address, '-c', 'rpm=1', ...own)).toMatchObject({ granted: false, reason: 'exhausted' });
});

test('acquire shows that a limit is near once the share of its warnAt is used', async () => {
  const address = store.copy();
  const own = ['-l', 'a:10/day!warnAt=0.8'];
  const first = await acquire(address, '-c', 'a=7', ...own);
  expect(first.levels[0]?.limits[0]?.near).toBe(undefined);
  const second = await acquire(address, '-c', 'a=2', ...own);
  expect(second.levels[0]?.limits[0]).toMatchObject({ near: true, after: 1 });
});

test('acquire --at-most takes what there is of that limit, and the whole amount of the others', async () => {
  const address = store.copy();
  const own = ['-l', 'a:10/day', '-l', 'b:10/day', '--at-most', 'a'];
  const granted = await acquire(address, '-c', 'a=50', '-c', 'b=2', ...own);
  expect(granted.levels[0]?.limits).toMatchObject([
    { name: 'a', asked: 10, before: 10, after: 0 },
    { name: 'b', asked: 2, before: 10, after: 8 },
  ]);
  const denied = await acquire(address, '-c', 'a=50', '-c', 'b=2', ...own);
  expect(denied).toMatchObject({ granted: false, reason: 'exhausted', exitCode: 10 });
  expect(denied.levels[0]?.limits[0]).toMatchObject({ asked: 1, before: 0 });
});

test('acquire --priority keeps the reserve of the class, and a shadow that is short is shown as not taken', async () => {
  const address = store.copy();
  const own = ['-l', 'a:10/day!reserve.batch=0.5', '-l', 'b:1/day!shadow'];
  const granted = await acquire(address, '-c', 'a=5', '-c', 'b=2', ...own, '--priority', 'batch');
  expect([granted.granted, granted.levels[0]?.limits.map(({ exceeded, shadow }) => [exceeded, shadow])]).toEqual([
    true,
    [
      [false, undefined],
      [true, true],
    ],
  ]);
  const denied = await acquire(address, '-c', 'a=1', ...own, '--priority', 'batch');
  expect(denied).toMatchObject({ granted: false, reason: 'exhausted', exitCode: 10 });
  expect(denied.levels[0]?.limits[0]).toMatchObject({ reserved: 5, before: 5, asked: 1 });
});
