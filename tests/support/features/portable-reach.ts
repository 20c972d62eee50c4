import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { Outcome, Step } from './portable-model.js';

/** A store that several processes of the machine can open. */
export type Reach =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'dynamodb'; readonly table: string; readonly endpoint: string; readonly region: string };

/** The leases that a process continues, all at the same time, with the steps that are left of each. */
export interface PortableOrder {
  readonly leases: readonly { readonly number: number; readonly token: string; readonly steps: readonly Step[] }[];
}

export type PortableNews =
  | { readonly kind: 'ready' }
  | { readonly kind: 'made'; readonly lease: number; readonly outcome: Outcome }
  | { readonly kind: 'failed'; readonly message: string };

const LIMITS = [Limit.perDay('rpd', 1_000), Limit.perDay('tpd', 1_000_000), Limit.concurrent('slots', 200)];
const SECRET = 'a secret of processes that are killed';

/** A limiter as every process of these tests has it. */
export async function openLimiter(reach: Reach): Promise<RateLimiter> {
  const store = reach.kind === 'file' ? file({ path: reach.path }) : createDynamoDBBackend(reach, {});
  const timeouts = { callMs: 30_000, acquireMs: 30_000 };
  return RateLimiter.open(store, { limits: LIMITS, leaseSecrets: [SECRET], timeouts });
}
