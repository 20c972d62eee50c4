import { applyWrite, credit, effectiveTokens } from '../../../core/bucket/bucket.js';
import type { Verdict } from '../../../core/bucket/decide.js';
import { add, type Int, sub } from '../../../core/int.js';
import type { EpochMs } from '../../../core/units.js';
import type { EntryResult } from './entries.js';
import { accountOf, type ShardImage } from '../table/items.js';
import type { ShardWrite } from './shard-write.js';

/**
 * The results of a write with the balances that the store returned. A stale image predicted the right answers, but from
 * its own balances. The difference between the stored and the predicted balance applies to every granted ask.
 */
export function correctVerdicts(
  results: readonly (EntryResult | null)[],
  { limits }: ShardWrite,
  seen: ShardImage,
  shown: ShardImage,
  nowMs: EpochMs,
): readonly (EntryResult | null)[] {
  let differences: Map<string, Int> | null = null;
  for (const { name, write } of limits) {
    const before = accountOf(seen, name);
    const after = accountOf(shown, name);
    if (before === undefined || after === undefined) continue;
    const difference = sub(after.tokensMilli, applyWrite(write, before.tokensMilli));
    if (difference === 0) continue;
    const { rate, tokensMilli } = before;
    const worth = (milli: Int): Int => effectiveTokens(rate, milli, credit(rate, seen.baseMs, nowMs));
    differences ??= new Map();
    differences.set(name, sub(worth(add(tokensMilli, difference)), worth(tokensMilli)));
  }
  if (differences === null) return results;
  const found = differences;
  const correct = (verdict: Verdict): Verdict => ({
    ...verdict,
    effectiveMilli: add(verdict.effectiveMilli, found.get(verdict.limit.name) ?? 0),
  });
  return results.map((result) => {
    if (result?.kind !== 'granted') return result;
    return { ...result, answer: { ...result.answer, verdicts: result.answer.verdicts.map(correct) } };
  });
}
