import { credit, effectiveTokens, type LimitWrite } from '../../src/core/bucket/bucket.js';
import { type Int, sub } from '../../src/core/int.js';
import type { EpochMs } from '../../src/core/units.js';
import type { Part } from './model.js';
import type { Rules } from './rules.js';
import { at, type BucketWrite, type Image } from './store.js';

const MAX_WRITES = 8;

/**
 * The published speculate / normal / retry / adjust rules, kept to show that the oracle finds their defects. A speculative
 * write does not check the base, so it takes tokens that the refill of another client then adds again. An adjustment does
 * not apply the capacity, so a debit after an idle time is lost.
 */
export const publishedRules: Rules = (store, initial) => {
  const images = new Map<number, Image>();

  async function send(client: number, write: BucketWrite): Promise<boolean> {
    const { applied, image } = await store.write(write);
    images.set(client, image);
    return applied;
  }

  async function acquire(client: number, ask: readonly Part[], nowMs: EpochMs): Promise<boolean> {
    for (let writes = 0; writes < MAX_WRITES; writes++) {
      const image = images.get(client) ?? initial;
      const isShort = ask.some(({ limit, milli }) => at(image.limits, limit).tokensMilli < milli);
      const write = isShort && fits(image, ask, nowMs) ? normal(image, ask, nowMs) : speculate(ask);
      if (await send(client, write)) return true;
      if (!fits(images.get(client) ?? initial, ask, nowMs)) return false;
    }
    throw new Error(`No write was applied in ${MAX_WRITES} attempts`);
  }

  return {
    async move(client, { asks, debits, refunds }, nowMs) {
      const granted: boolean[] = [];
      for (const ask of asks) granted.push(await acquire(client, ask, nowMs));
      for (const { limit, milli } of debits) await send(client, unconditional(limit, -milli));
      for (const { limit, milli } of refunds) await send(client, unconditional(limit, milli));
      return granted;
    },
    async change(client, limit, rate) {
      const write = { limit, write: addUnder(0, null), setRate: rate };
      await send(client, { ifBaseMs: null, setBaseMs: null, limits: [write] });
      return (images.get(client) ?? initial).baseMs;
    },
  };
};

function refilled(image: Image, limit: number, nowMs: EpochMs): Int {
  const { rate, tokensMilli } = at(image.limits, limit);
  return effectiveTokens(rate, tokensMilli, credit(rate, image.baseMs, nowMs));
}

function fits(image: Image, ask: readonly Part[], nowMs: EpochMs): boolean {
  return ask.every(({ limit, milli }) => refilled(image, limit, nowMs) >= milli);
}

/** Refills every limit from the base, moves the base, and takes. */
function normal(image: Image, ask: readonly Part[], nowMs: EpochMs): BucketWrite {
  const limits = image.limits.map(({ tokensMilli }, limit) => {
    const refill = sub(refilled(image, limit, nowMs), tokensMilli);
    const milli = ask.find((part) => part.limit === limit)?.milli;
    const floor = milli === undefined ? null : sub(milli, refill);
    return { limit, write: addUnder(sub(refill, milli ?? 0), floor), setRate: null };
  });
  return { ifBaseMs: image.baseMs, setBaseMs: Math.max(nowMs, image.baseMs), limits };
}

function speculate(ask: readonly Part[]): BucketWrite {
  const limits = ask.map(({ limit, milli }) => ({ limit, write: addUnder(-milli, milli), setRate: null }));
  return { ifBaseMs: null, setBaseMs: null, limits };
}

function unconditional(limit: number, deltaMilli: number): BucketWrite {
  return { ifBaseMs: null, setBaseMs: null, limits: [{ limit, write: addUnder(deltaMilli, null), setRate: null }] };
}

function addUnder(deltaMilli: Int, atLeastMilli: Int | null): LimitWrite {
  return { write: 'add', deltaMilli, atLeastMilli, atMostMilli: null };
}
