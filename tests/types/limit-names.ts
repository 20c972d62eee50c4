import { type Lease, Limit, RateLimiter } from '../../src/index.js';

const at = { entityId: 'user-1', resource: 'gpt-4' };

/** Only the names of `limits` compile. */
export async function namesComeFromTheLimits(): Promise<void> {
  const limiter = await RateLimiter.open({ limits: [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 4)] });
  await limiter.acquire({ ...at, consume: { rpm: 1, slots: 1 } });
  await limiter.acquire({ ...at, consume: { rpm: 1 } });
  await limiter.acquire(at);
  // @ts-expect-error rpn is not a limit
  await limiter.acquire({ ...at, consume: { rpn: 1 } });
  // @ts-expect-error rpn is not a limit
  await limiter.tryAcquire({ ...at, consume: { rpm: 1, rpn: 1 } });
  // @ts-expect-error rpn is not a limit
  await limiter.run({ ...at, consume: { rpn: 1 } }, () => 'done');
  // @ts-expect-error rpn is not a limit
  await limiter.timeUntilAvailable({ ...at, consume: { rpn: 1 } });
  // @ts-expect-error rpn is not a limit
  await limiter.peek({ ...at, consume: { rpn: 1 } });
  await limiter.charge({ ...at, amounts: { rpm: 1 }, id: 'a' });
  // @ts-expect-error rpn is not a limit
  await limiter.charge({ ...at, amounts: { rpn: 1 } });
  // @ts-expect-error rpn is not a limit
  await limiter.credit({ ...at, amounts: { rpn: 1 } });
  // @ts-expect-error an amount is a number
  await limiter.acquire({ ...at, consume: { rpm: '1' } });

  const left = await limiter.available(at);
  const rpm: number = left.rpm;
  // @ts-expect-error tpm is not a limit
  const tpm: number = left.tpm;
  await limiter.acquire({ ...at, consume: { rpm: rpm + tpm } });
}

/** The lease, and the limiter of another namespace, keep the names. */
export async function namesReachTheLease(): Promise<void> {
  const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('rpm', 60)] });
  const lease: Lease<'rpm'> = await limiter.acquire({ ...at, consume: { rpm: 1 } });
  await lease.settle({ rpm: 2 });
  // @ts-expect-error tmp is not a limit
  await lease.settle({ tmp: 1 });
  // @ts-expect-error tmp is not a limit
  await lease.adjust({ tmp: 1 });
  // @ts-expect-error tmp is not a limit
  await lease.commit({ tmp: 1 });
  // @ts-expect-error tmp is not a limit
  Number(lease.consumed.tmp);

  await limiter.run({ ...at, consume: { rpm: 1 } }, async (held) => {
    await held.settle({ rpm: 2 });
    // @ts-expect-error tmp is not a limit
    await held.settle({ tmp: 1 });
  });

  const acme = await limiter.in('acme');
  // @ts-expect-error rpn is not a limit
  await acme.acquire({ ...at, consume: { rpn: 1 } });
}

/** A type argument checks names without `limits`, because the limits are in the store. */
export async function namesComeFromTheTypeArgument(): Promise<void> {
  const opened = await RateLimiter.open<'rpm'>('memory:');
  const constructed = new RateLimiter<'rpm'>('memory:');
  for (const limiter of [opened, constructed]) {
    await limiter.acquire({ ...at, consume: { rpm: 1 } });
    // @ts-expect-error rpn is not a limit
    await limiter.acquire({ ...at, consume: { rpn: 1 } });
  }
  // @ts-expect-error the limits and the type argument disagree
  await RateLimiter.open<'rpm'>({ limits: [Limit.perMinute('tpm', 60)] });
}

/** Without names, any name compiles, because the store checks it. */
export async function namesAreLooseWithoutLimits(): Promise<void> {
  const limiter = await RateLimiter.open();
  const lease = await limiter.acquire({ ...at, consume: { rpm: 1, anything: 2 } });
  await lease.settle({ anything: 3 });
  const parsed = await RateLimiter.open({ limits: [Limit.parse('tpm:10000/min')] });
  await parsed.acquire({ ...at, consume: { anything: 1 } });
  // @ts-expect-error an amount is a number
  await limiter.acquire({ ...at, consume: { rpm: '1' } });
}
