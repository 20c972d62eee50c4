import { Limit, RateLimiter } from 'headgate';
import OpenAI from 'openai';

/** A queue that delivers a message again if its worker fails, as SQS does. */
export interface Queue {
  send(message: string): Promise<void>;
  receive(work: (message: string) => Promise<void>): Promise<void>;
}

interface Job {
  readonly prompt: string;
  /** The token of the lease that the web process has acquired. */
  readonly lease: string;
}

const openai = new OpenAI({ maxRetries: 0 });

/** Opened in both processes, with the same secret. */
export function openLimiter(store: string): RateLimiter {
  return new RateLimiter(store, {
    limits: [Limit.perMinute('tpm', 50_000), Limit.concurrent('jobs', 10)],
    leaseSecrets: [process.env['HEADGATE_LEASE_SECRET'] ?? 'only-for-this-example'],
  });
}

// #region web
/** The web process: takes the tokens and the slot before the job is queued, so that a full queue is refused at once. */
export async function enqueue(limiter: RateLimiter, queue: Queue, userId: string, prompt: string): Promise<void> {
  const ask = { entityId: userId, resource: 'gpt-4o-mini', consume: { tpm: 2_000, jobs: 1 }, portable: true };
  // If the queue refuses the job, `run` gives everything back.
  await limiter.run(ask, async (lease) => {
    const job: Job = { prompt, lease: await lease.token() };
    await queue.send(JSON.stringify(job));
  });
}
// #endregion web

// #region worker
/** The worker: continues the lease and ends it with what the call has used. A repeated job is charged once. */
export async function work(limiter: RateLimiter, queue: Queue): Promise<void> {
  await queue.receive(async (message) => {
    const { prompt, lease: token } = JSON.parse(message) as Job;
    const lease = await limiter.leases.resume(token);
    if (lease.state !== 'open') return;
    await lease.extend();
    const reply = await openai.chat.completions.create({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: prompt }],
      max_completion_tokens: 500,
    });
    await lease.commit({ tpm: reply.usage?.total_tokens ?? 2_000 });
  });
}
// #endregion worker
