import { expect, test } from 'vitest';
import { ASK, ASK_SLOT, openLimiter } from '../../../tests/support/models/open-limiter.js';
import type { Lease } from './lease.js';

type Opened = Awaited<ReturnType<typeof openLimiter>>;

const UNCERTAIN = {
  where: 'giving tokens back',
  error: { code: 'backend.unavailable', kind: 'timeout', message: expect.stringContaining('may stay taken') },
};

/** Makes a correction whose answer does not arrive before the deadline. `afterWrite`: whether the write lands. */
async function unanswered({ store, clock }: Opened, afterWrite: boolean, correct: () => Promise<void>): Promise<void> {
  store.start({ mode: 'hang', only: ['adjust'], calls: 1, afterWrite });
  const given = expect(correct()).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'timeout' });
  await clock.advance(1_000);
  await given;
}

const REFUNDS: readonly (readonly [string, (lease: Lease) => Promise<void>])[] = [
  ['rollback', async (lease) => lease.rollback()],
  ['adjust', async (lease) => lease.adjust({ tpm: -200 })],
  ['settle', async (lease) => lease.settle({ tpm: 300 })],
  ['commit', async (lease) => lease.commit({ tpm: 300 })],
];

test.each(REFUNDS)('onError reports that the refund of a %s got no answer in time', async (_, correct) => {
  const opened = await openLimiter();
  const lease = await opened.limiter.acquire(ASK);
  await unanswered(opened, false, async () => correct(lease));
  expect(opened.errors).toMatchObject([UNCERTAIN]);
});

test('a refund that got no answer in time is reported once, and not sent again', async () => {
  const opened = await openLimiter();
  const lease = await opened.limiter.acquire(ASK);
  await unanswered(opened, true, async () => lease.rollback());
  await lease.rollback();
  expect(opened.store.calls.filter((call) => call === 'adjust')).toHaveLength(1);
  expect(opened.errors).toMatchObject([UNCERTAIN]);
  expect(await opened.limiter.available(ASK)).toMatchObject({ rpm: 60, tpm: 6_000 });
});

test('a correction without a refund that got no answer in time is not reported, because it is sent again', async () => {
  const opened = await openLimiter();
  const lease = await opened.limiter.acquire(ASK_SLOT);
  await unanswered(opened, false, async () => lease.commit({ tpm: 900 }));
  expect(opened.errors).toEqual([]);
  await lease.commit({ tpm: 900 });
  expect(lease.state).toBe('committed');
});
