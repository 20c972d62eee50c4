import type { ChildProcess } from 'node:child_process';
import type { TakerNews, TakerOrder } from '../support/dynamodb/workloads/bucket-work.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';

/** Processes that take from one table. */
export class TakerPool {
  readonly #children: readonly ChildProcess[];
  readonly #exits: readonly Promise<number | string>[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    this.#exits = children.map(ended);
  }

  static async start(count: number): Promise<TakerPool> {
    const start = await forkable(new URL('./bucket-taker.ts', import.meta.url));
    return new TakerPool(Array.from({ length: count }, () => start()));
  }

  get size(): number {
    return this.#children.length;
  }

  /** Sends each process its own order, and returns all answers. */
  async tell(orderOf: (taker: number) => TakerOrder): Promise<readonly TakerNews[]> {
    return Promise.all(this.#children.map(async (child, taker) => this.#ask(child, taker, orderOf(taker))));
  }

  async #ask(child: ChildProcess, taker: number, order: TakerOrder): Promise<TakerNews> {
    const answer = new Promise<TakerNews>((resolve) => {
      child.once('message', (news) => resolve(news as TakerNews));
    });
    // A process that ended is reported by its exit, so errors of `send` are ignored.
    child.send(order, () => {});
    const died = this.#exits[taker]?.then((exit) => {
      throw new Error(`Taker ${taker} ended with ${exit}`);
    });
    return Promise.race([answer, ...(died === undefined ? [] : [died])]);
  }

  async stop(): Promise<void> {
    for (const child of this.#children) if (child.connected) child.disconnect();
    await Promise.all(this.#exits);
  }
}
