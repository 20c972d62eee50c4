import { once } from 'node:events';
import type { HolderNews, HolderOrder } from '../processes/holder.js';
import { ended, forkable } from '../processes/fork-bundled.js';

/** Starts processes that take slots by the order, kills them with -9, and returns the ids of their leases. */
export async function killHolders(processes: number, order: HolderOrder): Promise<readonly string[]> {
  const start = await forkable(new URL('../processes/holder.ts', import.meta.url));
  const held = await Promise.all(
    Array.from({ length: processes }, async () => {
      const child = start(JSON.stringify(order));
      const [news] = (await once(child, 'message')) as [HolderNews];
      const dead = ended(child);
      child.kill('SIGKILL');
      const signal = await dead;
      if (signal !== 'SIGKILL') throw new Error(`It ended by itself: ${signal}`);
      return news.leaseIds;
    }),
  );
  return held.flat();
}
