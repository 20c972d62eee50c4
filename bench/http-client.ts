import { HeadgateClient } from '../src/client/client.js';

export interface ClientOrder {
  readonly url: string;
  readonly callers: number;
  readonly forMs: number;
}

export interface ClientNews {
  readonly grants: number;
}

/** A process that acquires from one bucket through a server, with many calls in flight, as often as it is told to. */
export function askForBench(): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (order) => {
    void follow(order as ClientOrder).then((news) => process.send?.(news));
  });
}

async function follow({ url, callers, forMs }: ClientOrder): Promise<ClientNews> {
  const client = new HeadgateClient(url, { timeoutMs: 30_000 });
  const untilMs = performance.now() + forMs;
  let grants = 0;
  const call = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      await client.acquire({ entityId: 'hot', resource: 'gpt-4', consume: { rph: 1, tph: 100 } });
      grants += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return { grants };
}
