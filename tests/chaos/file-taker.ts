/**
 * A process that takes from a file store until it has made all its attempts. Each grant is reported by one byte in a file,
 * written at once: what a process has reported before kill -9 stays reported.
 */
import { openSync, writeSync } from 'node:fs';
import { file } from '../../src/backends/embedded/file/file.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';

export interface TakerOrder {
  readonly path: string;
  readonly reportPath: string;
  readonly limits: readonly string[];
  readonly consume: Readonly<Record<string, number>>;
  readonly attempts: number;
}

export interface TakerNews {
  readonly attempt: number;
}

const order = JSON.parse(process.argv[2] ?? '{}') as TakerOrder;
const report = openSync(order.reportPath, 'a');
const limiter = await RateLimiter.open(file({ path: order.path }), {
  limits: order.limits.map((text) => Limit.parse(text)),
  timeouts: { callMs: 30_000, acquireMs: 30_000 },
});
for (let attempt = 1; attempt <= order.attempts; attempt++) {
  const { granted } = await limiter.tryAcquire({ entityId: 'shared', resource: 'batch', consume: order.consume });
  if (granted) writeSync(report, 'g');
  if (attempt % 100 === 0) tell({ attempt });
}
tell({ attempt: order.attempts });
process.disconnect();

function tell(news: TakerNews): void {
  process.send?.(news);
}
