import type { LevelAsk } from '../../../../backend.js';
import { exceedsCapacity, type Verdict } from '../../../../core/bucket/decide.js';

/** The verdict as that of a limit which is no shadow. */
export function enforced(verdict: Verdict): Verdict {
  if (verdict.shadow === undefined) return verdict;
  const { shadow: _, ...rest } = verdict;
  return rest;
}

/** Judged also by the rules that the caller has read: those of an old image may have been raised since. */
export function neverFits({ limits }: LevelAsk, verdict: Verdict): boolean {
  const limit = limits.find(({ name }) => name === verdict.limit.name);
  return limit === undefined || exceedsCapacity({ ...verdict, limit });
}
