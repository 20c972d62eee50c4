// #region both
import { Limit, RateLimiter } from 'headgate';
// #endregion both
import { callModel } from './model.js';

interface Job {
  readonly prompt: string;
  readonly lease: string;
}

export interface Jobs {
  send(job: Job): Promise<void>;
  receive(): Promise<Job>;
}

export async function travel(queue: Jobs): Promise<string> {
  const prompt = 'Why is the sky blue?';
  // #region both
  // In both processes, with the same HEADGATE_LEASE_SECRET.
  const limiter = await RateLimiter.open({
    limits: [Limit.perMinute('tpm', 10_000), Limit.concurrent('jobs', 4)],
  });

  // The web process: takes the tokens and the slot, and sends the job.
  const lease = await limiter.acquire({
    entityId: 'user-1',
    resource: 'gpt-4',
    consume: { tpm: 500, jobs: 1 },
    portable: true,
    leaseTtlMs: 300_000,
  });
  await queue.send({ prompt, lease: await lease.token() });

  // The worker: continues the lease, and ends it.
  const job = await queue.receive();
  const resumed = await limiter.leases.resume(job.lease);
  const reply = await callModel(job.prompt);
  await resumed.commit({ tpm: reply.usage.total_tokens });
  // #endregion both
  await limiter.close();
  return resumed.state;
}

export async function sendInRun(limiter: RateLimiter, queue: Jobs): Promise<void> {
  const prompt = 'Why is the sky blue?';
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { tpm: 500, jobs: 1 } };
  // #region run
  await limiter.run({ ...ask, portable: true }, async (lease) => queue.send({ prompt, lease: await lease.token() }));
  // #endregion run
}
