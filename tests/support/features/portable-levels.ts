import { isHeadgateError } from '../../../src/core/errors.js';
import { Limit } from '../../../src/core/limit.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';

export const USER = { entityId: 'user-1', resource: 'gpt-4' };
export const LIMITS = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100_000), Limit.concurrent('slots', 8)];
/** The team also limits what the user does not. */
const TEAM_LIMITS = [...LIMITS, Limit.perDay('usd', 1_000), Limit.concurrent('jobs', 8)];

/** Amounts of a limit of both levels, and of one that only the team has. */
type Amounts = Partial<Record<'tpd' | 'usd', number>>;

export type LevelStep =
  | { readonly kind: 'settle' | 'commit'; readonly amounts: Amounts }
  | { readonly kind: 'adjust'; readonly amounts: Amounts; readonly id: string }
  | { readonly kind: 'rollback' | 'release' };

export type Size = Readonly<Record<'rpd' | 'tpd' | 'slots', number>>;

/**
 * What a lease has taken at both levels, if every step happens at once at both, in the order in which the user's level
 * got them.
 */
export class LevelsModel {
  state: 'open' | 'committed' | 'rolled-back' = 'open';
  team: Record<string, number>;
  readonly #adjusts = new Set<string>();

  constructor(taken: Size) {
    this.team = { ...taken, usd: 10, jobs: 1 };
  }

  get user(): Record<string, number> {
    const { usd: _usd, jobs: _jobs, ...own } = this.team;
    return own;
  }

  apply(step: LevelStep): 'done' | 'closed' {
    if (step.kind === 'adjust' && this.#adjusts.has(step.id)) return 'done';
    if (this.state !== 'open') return step.kind === 'release' || endOf(step) === this.state ? 'done' : 'closed';
    switch (step.kind) {
      case 'settle':
      case 'commit':
        for (const [name, total] of Object.entries(step.amounts)) this.team[name] = total;
        break;
      case 'adjust':
        for (const [name, delta] of Object.entries(step.amounts)) {
          this.team[name] = Math.max(0, (this.team[name] ?? 0) + delta);
        }
        this.#adjusts.add(step.id);
        break;
      case 'rollback':
        for (const name of Object.keys(this.team)) this.team[name] = 0;
        break;
      case 'release':
        break;
    }
    if (step.kind !== 'settle' && step.kind !== 'adjust') this.expire();
    this.state = endOf(step) ?? 'open';
    return 'done';
  }

  /** The slots return, and what rates took stays. */
  expire(): void {
    this.team = { ...this.team, slots: 0, jobs: 0 };
  }
}

function endOf({ kind }: LevelStep): 'committed' | 'rolled-back' | null {
  if (kind === 'commit') return 'committed';
  return kind === 'rollback' ? 'rolled-back' : null;
}

/** Makes a step with a real lease. `killed`: its process was cut off. */
export async function perform(lease: Lease, step: LevelStep): Promise<'done' | 'closed' | 'killed'> {
  try {
    if (step.kind === 'settle') await lease.settle(step.amounts);
    else if (step.kind === 'adjust') await lease.adjust(step.amounts, { operationId: step.id });
    else if (step.kind === 'commit') await lease.commit(step.amounts);
    else await lease[step.kind]();
    return 'done';
  } catch (error) {
    if (isHeadgateError(error, 'lease.closed')) return 'closed';
    if (isHeadgateError(error, 'backend.unavailable')) return 'killed';
    throw error;
  }
}

/** Creates the user and its team. */
export async function createLevels(limiter: RateLimiter): Promise<void> {
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
  await limiter.config.setEntity('team', USER.resource, { limits: TEAM_LIMITS });
}

export function askFor(taken: Size) {
  return { ...USER, consume: { ...taken, usd: 10, jobs: 1 }, portable: true, leaseTtlMs: 3_600_000 };
}

/** What both levels have given. */
export async function takenAt(limiter: RateLimiter): Promise<readonly Record<string, number>[]> {
  return Promise.all(
    [USER.entityId, 'team'].map(async (entityId) => {
      const { limits = [] } = (await limiter.buckets.get({ ...USER, entityId })) ?? {};
      return Object.fromEntries(limits.map(({ limit, consumed }) => [limit.name, consumed]));
    }),
  );
}
