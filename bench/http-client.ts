import { HeadgateClient } from '../src/client/client.js';

export interface ClientOrder {
  readonly url: string;
  readonly callers: number;
}

export interface ClientNews {
  /** Since the start. */
  readonly grants: number;
}

/**
 * A process that acquires from one bucket through a server, with many calls in flight. The first order starts it; each
 * is answered.
 */
export function askForBench(): void {
  let load: ClientNews | null = null;
  process.on('disconnect', () => process.exit());
  process.on('message', (order) => {
    load ??= startLoad(order as ClientOrder);
    process.send?.({ grants: load.grants } satisfies ClientNews);
  });
}

function startLoad({ url, callers }: ClientOrder): ClientNews {
  const client = new HeadgateClient(url, { timeoutMs: 30_000 });
  const load = { grants: 0 };
  const call = async (): Promise<never> => {
    for (;;) {
      await client.acquire({ entityId: 'hot', resource: 'gpt-4', consume: { rph: 1, tph: 100 } });
      load.grants += 1;
    }
  };
  for (let caller = 0; caller < callers; caller++) void call();
  return load;
}
