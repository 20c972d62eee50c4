import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { ServedStore, ServerNews } from './http-server.js';
import { FLAGS } from './settings.js';

/** A process that runs `serveForBench`. */
export class BenchServer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(served: ServedStore): Promise<BenchServer> {
    const child = fork(process.argv[1] ?? '', ['http-server', JSON.stringify(served), ...FLAGS]);
    const [news] = (await once(child, 'message')) as [ServerNews];
    return new BenchServer(child, news.url);
  }

  /** The CPU time of the process so far, in microseconds. */
  async cpuUs(): Promise<number> {
    return (await tell<ServerNews>(this.#child, {})).cpuUs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

/** Sends an order to a process, and returns its answer. */
export async function tell<T>(child: ChildProcess, order: object): Promise<T> {
  const answer = once(child, 'message');
  child.send(order);
  const [news] = await answer;
  return news as T;
}
