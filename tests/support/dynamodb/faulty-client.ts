import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { timeLeftMs } from '../../../src/machine-time.js';
import { openTransport } from '../../../src/backends/dynamodb/client/open-transport.js';
import type { Transport } from '../../../src/backends/dynamodb/client/transport.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fault, type FaultProxy, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import type { Arena } from './workloads/arena.js';

/** The delay by a busy machine after which a request still counts as in time. */
const SLOW_MS = 1_500;

/** A limiter with its own store behind its own fault proxy. */
export class FaultyClient implements AsyncDisposable {
  readonly limiter: RateLimiter;
  readonly proxy: FaultProxy;
  /** Requests that were sent or awaited after their deadline. */
  readonly late: string[];

  readonly transport: Transport;

  private constructor(limiter: RateLimiter, proxy: FaultProxy, transport: Transport, late: string[]) {
    this.limiter = limiter;
    this.proxy = proxy;
    this.transport = transport;
    this.late = late;
  }

  /** Sends nothing: the first call opens the store. */
  static async make(arena: Arena, seed: number, options: LimiterOptions): Promise<FaultyClient> {
    const proxy = await startFaultProxy(arena.engine.endpoint, { seed });
    const late: string[] = [];
    const { region } = arena.engine;
    const transport = watched(openTransport({ endpoint: proxy.endpoint, region }), late);
    const pressure = { paceAbove: 1e6, splitAbove: 1e6 };
    const backend = createDynamoDBBackend({ table: arena.tableName }, { transport, pressure });
    return new FaultyClient(new RateLimiter(backend, options), proxy, transport, late);
  }

  /**
   * Of every hundred requests, five are lost, five lose their answer, five are throttled, and six fail in other ways.
   */
  storm(): void {
    const { proxy } = this;
    proxy.inject(fault.loseAnswer(), { probability: 0.05 });
    proxy.inject(fault.loseRequest(), { probability: 0.05 });
    proxy.inject(fault.throttle(), { probability: 0.01 });
    proxy.inject(fault.throttle({ error: 'ThrottlingException', limit: null }), { probability: 0.04 });
    proxy.inject(fault.transactionConflict(), { probability: 0.03 });
    proxy.inject(fault.serverError(500), { probability: 0.02 });
    proxy.inject(fault.serverError(503), { probability: 0.01 });
    proxy.inject(fault.processOnly(1), { probability: 0.3 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.limiter.close();
    await this.proxy.stop();
  }
}

function watched(transport: Transport, late: string[]): Transport {
  return {
    ...transport,
    send: async (operation, input, deadline) => {
      if (timeLeftMs(deadline) <= 0) late.push(`${operation} was sent ${-timeLeftMs(deadline)} ms late`);
      try {
        return await transport.send(operation, input, deadline);
      } finally {
        if (timeLeftMs(deadline) < -SLOW_MS) late.push(`${operation} ended ${-timeLeftMs(deadline)} ms late`);
      }
    },
  };
}
