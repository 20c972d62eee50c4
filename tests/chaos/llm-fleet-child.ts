/** A process with 50 clients of OpenAI that share one upstream key with other processes, with or without limits. */
import { setMaxListeners } from 'node:events';
import OpenAI from 'openai';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { limitFetch } from '../../src/integrations/llm/index.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { wordsIn } from '../../src/testing/provider/provider-request.js';

export interface FleetOrder {
  readonly process: number;
  readonly url: string;
  readonly model: string;
  readonly durationMs: number;
  readonly clients: number;
  /** The fewest words of a prompt. */
  readonly words: number;
  readonly maxOutput: number;
  /** null: without Headgate. */
  readonly store: { readonly endpoint: string; readonly region: string; readonly table: string } | null;
}

export interface FleetNews {
  readonly calls: number;
  /** Calls that failed although the client retried. */
  readonly failed: number;
  readonly reasons: readonly string[];
  readonly errors: readonly string[];
}

async function follow(order: FleetOrder): Promise<FleetNews> {
  const { store, url, model, durationMs, maxOutput, words } = order;
  const errors: string[] = [];
  const onError = (error: unknown, where: string): void => void errors.push(`${where}: ${String(error)}`);
  const timeouts = { callMs: 20_000, acquireMs: 30_000 };
  const limiter =
    store === null ? null : await RateLimiter.open(createDynamoDBBackend(store, {}), { onError, timeouts });
  const limited =
    limiter === null
      ? null
      : limitFetch(fetch, {
          limiter,
          entityId: `process-${order.process}`,
          upstream: 'upstream',
          measures: { tpm: 'tokens' },
          countTokens: wordsIn,
          waitMs: 120_000,
          onError,
        });
  const client = new OpenAI({
    apiKey: 'sk-fleet',
    baseURL: `${url}/v1`,
    timeout: 180_000,
    ...(limited === null ? {} : { fetch: limited, maxRetries: 0 }),
  });
  process.send?.('ready');
  await new Promise((resolve) => process.once('message', resolve));

  const over = new AbortController();
  setMaxListeners(0, over.signal);
  setTimeout(() => over.abort(), durationMs);
  let [calls, failed] = [0, 0];
  const reasons = new Set<string>();
  const work = async (at: number): Promise<void> => {
    for (let made = 0; !over.signal.aborted; made++) {
      const content = 'word '.repeat(words + ((at * 31 + made * 17 + order.process * 7) % (2 * words)));
      const body = { model, messages: [{ role: 'user' as const, content }], max_completion_tokens: maxOutput };
      try {
        await client.chat.completions.create(body, { signal: over.signal });
        calls += 1;
      } catch (error) {
        if (over.signal.aborted) continue;
        failed += 1;
        const { cause } = error as Error;
        reasons.add(`${String(error)} (${String(cause)})`);
      }
    }
  };
  await Promise.all(Array.from({ length: order.clients }, (_, at) => work(at)));
  await limited?.settled();
  await limiter?.close();
  return { calls, failed, reasons: [...reasons].slice(0, 5), errors };
}

process.once('message', (order) => {
  follow(order as FleetOrder).then(
    (news) => process.send?.(news, () => process.exit(0)),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
