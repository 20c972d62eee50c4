import type { Awaitable } from '../../src/backend.js';
import {
  credit,
  effectiveTokens,
  type Move,
  nextBase,
  planMove,
  planRebase,
  type Rate,
} from '../../src/core/bucket/bucket.js';
import { add, type Int, sub } from '../../src/core/int.js';
import type { EpochMs } from '../../src/core/units.js';
import type { Group, Part } from './model.js';
import { at, type BucketWrite, type ConditionalStore, type Image } from './store.js';

/** Several clients of one bucket, each with its own image, which may be stale. */
export interface Clients {
  /** Writes a group. Returns which of its asks were granted. */
  move(client: number, group: Group, nowMs: EpochMs): Awaitable<readonly boolean[]>;
  /** Changes one limit. Returns the new base. */
  change(client: number, limit: number, rate: Rate, nowMs: EpochMs): Awaitable<EpochMs>;
  /** Pauses the bucket until the time; null: ends the pause. Left out: these rules know no pauses. */
  pause?(endMs: EpochMs | null, nowMs: EpochMs): Awaitable<void>;
}

/** How clients write: the subject of the oracle. */
export type Rules = (store: ConditionalStore, initial: Image) => Clients;

/** The image that a store returns with a refusal is exact, so without other writers a second write is enough. */
const MAX_WRITES = 8;

/**
 * Headgate's rules: a take does not move the base, the condition contains the credit, and a refused write is planned again
 * from the returned image.
 */
export const baseThatStays: Rules = (store, initial) => {
  const images = new Map<number, Image>();

  /** Plans and writes until a write is applied. A plan of null ends it: there is nothing to write. */
  async function write(client: number, plan: (image: Image, refused: boolean) => BucketWrite | null): Promise<Image> {
    for (let writes = 0; writes < MAX_WRITES; writes++) {
      const image = images.get(client) ?? initial;
      const planned = plan(image, writes > 0);
      if (planned === null) return image;
      const answer = await store.write(planned);
      images.set(client, answer.image);
      if (answer.applied) return answer.image;
    }
    throw new Error(`No write was applied in ${MAX_WRITES} attempts`);
  }

  return {
    async move(client, group, nowMs) {
      let granted: readonly boolean[] = [];
      await write(client, (image, refused) => {
        // A guess from a stale image may only grant. Only the exact image of a refusal may deny.
        granted = refused ? fittingAsks(image, group.asks, nowMs) : group.asks.map(() => true);
        return planGroup(image, { ...group, asks: group.asks.filter((_, index) => granted[index]) }, nowMs);
      });
      return granted;
    },
    async change(client, limit, rate, nowMs) {
      const { baseMs } = await write(client, (image) => planChange(image, limit, rate, nowMs));
      return baseMs;
    },
  };
};

/** One after the other; skips asks that do not fit. */
function fittingAsks(image: Image, asks: Group['asks'], nowMs: EpochMs): readonly boolean[] {
  const left = image.limits.map(({ rate, tokensMilli }) =>
    effectiveTokens(rate, tokensMilli, credit(rate, image.baseMs, nowMs)),
  );
  return asks.map((ask) => {
    if (!ask.every(({ limit, milli, reserveMilli }) => at(left, limit) >= milli + reserveMilli)) return false;
    for (const { limit, milli } of ask) left[limit] = sub(at(left, limit), milli);
    return true;
  });
}

/** null: the group is empty. */
function planGroup(image: Image, group: Group, nowMs: EpochMs): BucketWrite | null {
  const limits = image.limits.flatMap(({ rate, tokensMilli }, limit) => {
    const move: Move = {
      takeMilli: sumOf(group.asks.flat(), limit),
      reserveMilli: largestReserve(group.asks.flat(), limit),
      debitMilli: sumOf(group.debits, limit) ?? 0,
      refundMilli: sumOf(group.refunds, limit) ?? 0,
    };
    if (move.takeMilli === null && move.debitMilli === 0 && move.refundMilli === 0) return [];
    const credited = credit(rate, image.baseMs, nowMs);
    return [{ limit, write: planMove(rate, tokensMilli, credited, move), setRate: null }];
  });
  return limits.length === 0 ? null : { ifBaseMs: image.baseMs, setBaseMs: null, limits };
}

function planChange(image: Image, changed: number, wanted: Rate, nowMs: EpochMs): BucketWrite {
  const { baseMs } = image;
  const setBaseMs = nextBase(baseMs, nowMs);
  const limits = image.limits.map(({ rate, tokensMilli }, limit) => {
    const setRate = limit === changed ? wanted : rate;
    return { limit, write: planRebase(rate, setRate, tokensMilli, baseMs, setBaseMs), setRate };
  });
  return { ifBaseMs: baseMs, setBaseMs, limits };
}

function largestReserve(parts: readonly Part[], limit: number): number {
  return Math.max(0, ...parts.filter((part) => part.limit === limit).map(({ reserveMilli }) => reserveMilli));
}

/** null: the limit is not named. A named 0 requires a balance that is not negative. */
function sumOf(parts: readonly Part[], limit: number): Int | null {
  let sum: Int | null = null;
  for (const part of parts) if (part.limit === limit) sum = add(sum ?? 0, part.milli);
  return sum;
}
