import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { drawSteps, sumOfTaken, TAKEN, USER } from '../support/features/portable-lives.js';
import { perform, PortableModel, type Step } from '../support/features/portable-model.js';
import { openLimiter, type PortableNews, type PortableOrder, type Reach } from '../support/features/portable-reach.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';

const TEAM = { ...USER, entityId: 'team' };
/** Two processes work at the same time, each with its own leases of the same user. */
const PROCESSES = 2;
const LEASES_EACH = 12;

/** A lease as its test knows it: only the steps whose outcome a process has told are made. */
interface Life {
  readonly token: string;
  readonly model: PortableModel;
  readonly steps: readonly Step[];
  made: number;
}

describe('portable leases of processes that are killed with SIGKILL', () => {
  let folder: string;
  let engine: Engine | null = null;
  let start: Awaited<ReturnType<typeof forkable>>;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-killed-'));
    start = await forkable(new URL('./portable-child.ts', import.meta.url));
    if (ENGINE.missing) return;
    engine = await startEngine();
    process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
  });
  afterAll(async () => {
    await engine?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function reach(kind: Reach['kind']): Promise<Reach> {
    if (kind === 'file') return { kind, path: join(folder, 'leases.db') };
    const { endpoint, region } = engine!;
    const table = 'portable-killed';
    await createTable({ tableName: table, endpoint, region });
    return { kind, table, endpoint, region };
  }

  const begin = async (limiter: RateLimiter, random: Random): Promise<Life> => {
    const lease = await limiter.acquire({ ...USER, consume: TAKEN, portable: true, leaseTtlMs: 3_600_000 });
    const steps = [...drawSteps(random), random.pick<Step>([{ kind: 'commit', tpd: null }, { kind: 'rollback' }])];
    return { token: await lease.token(), model: new PortableModel(TAKEN), steps, made: 0 };
  };

  /** Books the steps that a process makes, and kills it shortly after some of them. Returns how many were under way. */
  async function killAmidSteps(child: ChildProcess, lives: readonly Life[], random: Random): Promise<number> {
    const exit = ended(child);
    let untilKill = random.whole(1, LEASES_EACH);
    const kill = (): void => void setTimeout(() => child.kill('SIGKILL'), random.whole(0, 6));
    const isDone = (life: Life): boolean => life.made === life.steps.length;
    const failures: string[] = [];
    child.on('message', (news: PortableNews) => {
      if (news.kind === 'failed') {
        failures.push(news.message);
        kill();
      }
      if (news.kind === 'ready') child.send(orderOf(lives), () => {});
      if (news.kind !== 'made') return;
      const life = lives[news.lease]!;
      const step = life.steps[life.made++]!;
      const expected = life.model.apply(step);
      if (news.outcome !== expected) failures.push(`${JSON.stringify(step)}: ${news.outcome} instead of ${expected}`);
      if (--untilKill === 0 || lives.every(isDone)) kill();
    });
    expect(await exit).toBe('SIGKILL');
    expect(failures).toEqual([]);
    return lives.filter((life) => !isDone(life)).length;
  }

  function orderOf(lives: readonly Life[]): PortableOrder {
    return { leases: lives.map(({ token, steps, made }, number) => ({ number, token, steps: steps.slice(made) })) };
  }

  async function taken(limiter: RateLimiter, bucket: typeof USER): Promise<Record<string, number>> {
    const { limits = [] } = (await limiter.buckets.get(bucket)) ?? {};
    return Object.fromEntries(limits.map(({ limit, consumed }) => [limit.name, consumed]));
  }

  test.each<Reach['kind']>(ENGINE.missing ? ['file'] : ['file', 'dynamodb'])(
    'every step of a lease counts exactly once at both levels on %s, however often its processes are killed and the next one repeats it',
    async (kind) => {
      const place = await reach(kind);
      const limiter = await openLimiter(place);
      await limiter.entities.create({ id: 'team' });
      await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
      let [kills, underWay] = [0, 0];
      const live = async (seed: number): Promise<readonly Life[]> => {
        const random = new Random(seed);
        const lives = await Promise.all(Array.from({ length: LEASES_EACH }, async () => begin(limiter, random)));
        while (lives.some(({ made, steps }) => made < steps.length)) {
          underWay += await killAmidSteps(start(JSON.stringify(place)), lives, random);
          kills += 1;
        }
        return lives;
      };
      const all = (await Promise.all(Array.from({ length: PROCESSES }, async (_, at) => live(at + 1)))).flat();
      console.log(`${kind}: ${kills} processes killed, ${underWay} leases under way`);
      expect(underWay).toBeGreaterThan(kills);
      const sums = sumOfTaken(all.map(({ model }) => model));
      expect(sums.slots).toBe(0);
      expect([await taken(limiter, USER), await taken(limiter, TEAM)]).toEqual([sums, sums]);
      // Another process repeats the end of every lease: the same answer, and nothing counts again.
      const last = await openLimiter(place);
      for (const { token, steps, model } of all) {
        expect(await perform(await last.leases.resume(token), steps.at(-1)!)).toBe(model.apply(steps.at(-1)!));
      }
      expect([await taken(last, USER), await taken(last, TEAM)]).toEqual([sums, sums]);
      await Promise.all([limiter.close({ leases: 'keep' }), last.close({ leases: 'keep' })]);
    },
  );
});
