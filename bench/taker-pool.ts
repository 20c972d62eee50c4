import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Taken, TakerOrder } from './bucket-taker.js';
import { FLAGS } from './settings.js';

/** Processes that run `takeFromBuckets`. */
export class TakerPool implements AsyncDisposable {
  readonly #children: readonly ChildProcess[];

  constructor(size: number) {
    this.#children = Array.from({ length: size }, () =>
      fork(process.argv[1] ?? '', ['bucket-taker', ...FLAGS], { serialization: 'advanced' }),
    );
  }

  get size(): number {
    return this.#children.length;
  }

  /** Sends each process its order, and returns all answers. */
  async tell(orderOf: (taker: number) => TakerOrder): Promise<readonly Taken[]> {
    return Promise.all(this.#children.map(async (child, taker) => ask(child, orderOf(taker))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill();
        await ended;
      }),
    );
  }
}

async function ask(child: ChildProcess, order: TakerOrder): Promise<Taken> {
  const stop = new AbortController();
  const { signal } = stop;
  try {
    const ended = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`A process that takes from a bucket ended with ${code}`);
    });
    ended.catch(() => {});
    const answer = once(child, 'message', { signal });
    answer.catch(() => {});
    child.send(order);
    const [taken] = await Promise.race([answer, ended]);
    return taken as Taken;
  } finally {
    stop.abort();
  }
}
