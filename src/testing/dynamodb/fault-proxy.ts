import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ValidationError } from '../../core/errors.js';
import { Random } from '../conformance/kit/random.js';
import { parseBody, parseRequest } from './dynamo-request.js';
import { answerOf, datedHeaders } from './exchange.js';
import { isDecisive, type Fault } from './fault.js';
import { type FaultRule, FaultRules, type InjectedFault, type Strike } from './fault-rules.js';
import { readAll } from './forward.js';
import { ProxyLog, type RequestLog } from './request-log.js';

/** Options of `startFaultProxy`. */
export interface FaultProxyOptions {
  /** The same seed gives the same random faults for the same sequence of requests. Default: 1. */
  readonly seed?: number;
  /** Records every request, answer and consumed capacity. Otherwise requests are only counted. */
  readonly record?: boolean;
  /**
   * Adds `ReturnConsumedCapacity: INDEXES` to requests of clients that do not set it. This changes the signed body, as
   * partial batches do, so it does not work with engines that verify signatures (ExtendDB).
   */
  readonly askForCapacity?: boolean;
}

/** A proxy in front of an engine that counts requests and injects faults. */
export interface FaultProxy extends AsyncDisposable {
  /** The endpoint for clients, instead of the engine's. */
  readonly endpoint: string;
  readonly requests: RequestLog;
  /** Injects a fault into the requests that match the rule. Default: all requests. */
  readonly inject: (fault: Fault, rule?: FaultRule) => InjectedFault;
  /** Ends all faults and releases the requests that they hold. */
  readonly heal: () => void;
  /** Breaks every connection and refuses new ones until `accept`. */
  readonly refuse: () => Promise<void>;
  /** Listens again, on the same port. */
  readonly accept: () => Promise<void>;
  /** Stops the proxy, not the engine. Rejects if a predicate of a rule threw. */
  readonly stop: () => Promise<void>;
}

/** Shorter than the idle timeout of any engine: a request on a connection that the engine is closing would be lost. */
const IDLE_CONNECTION_MS = 4_000;

/** Starts a proxy on a free port of this machine, in front of the engine with this endpoint. */
export async function startFaultProxy(engineEndpoint: string, options: FaultProxyOptions = {}): Promise<FaultProxy> {
  const { seed = 1, record: records = false, askForCapacity = false } = options;
  if (!URL.canParse(engineEndpoint) || !engineEndpoint.startsWith('http://')) {
    throw new ValidationError('engineEndpoint', 'a URL like http://127.0.0.1:8000', engineEndpoint);
  }
  const engine = {
    endpoint: new URL(engineEndpoint),
    agent: new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS }),
  };
  const rules = new FaultRules(new Random(seed));
  const log = new ProxyLog(records);
  const ending = new AbortController();
  const mistakes: unknown[] = [];

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const text = await readAll(incoming);
    const request = parseRequest(String(incoming.headers['x-amz-target'] ?? ''), text);
    const strikes = struck(request);
    const record = log.add(
      request,
      strikes.map(({ fault }) => fault.kind),
    );
    await held(strikes, 'hold-request', ending.signal);
    const decisive = strikes.map(({ fault }) => fault).find(isDecisive);
    const answer = await answerOf({ engine, incoming, text, request, askForCapacity, record }, decisive);
    await held(strikes, 'hold-answer', ending.signal);
    if (answer === null) {
      incoming.socket.destroy();
      return;
    }
    if (record !== null) record.answer = { status: answer.status, body: parseBody(answer.body) };
    const shiftMs = strikes.reduce((sum, { fault }) => sum + (fault.kind === 'shift-date' ? fault.ms : 0), 0);
    outgoing.sendDate = false;
    outgoing.writeHead(answer.status, [
      ...datedHeaders(answer.headers, shiftMs, Date.now()),
      'Content-Length',
      String(answer.body.length),
    ]);
    outgoing.end(answer.body);
  };

  const struck = (request: Parameters<FaultRules['strike']>[0]): readonly Strike[] => {
    try {
      return rules.strike(request);
    } catch (error) {
      // A predicate of the test threw. The client gets a broken connection; `stop` throws the error.
      mistakes.push(error);
      throw error;
    }
  };

  const server = createServer((incoming, outgoing) => {
    // The client disconnected, the engine disconnected, or the proxy stops. In each case the connection is closed.
    serve(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  // Clients decide when idle connections are closed.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const refuse = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  const stop = async (): Promise<void> => {
    ending.abort();
    await refuse();
    engine.agent.destroy();
    const [mistake] = mistakes.splice(0);
    if (mistake !== undefined) throw mistake;
  };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    requests: log,
    inject: (fault, rule) => rules.inject(fault, rule),
    heal: () => rules.clear(),
    refuse,
    accept: async () => {
      if (server.listening) return;
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Waits while faults of this kind hold the request. Rejects if the proxy stops meanwhile. */
async function held(
  strikes: readonly Strike[],
  kind: 'hold-request' | 'hold-answer',
  signal: AbortSignal,
): Promise<void> {
  for (const { fault, released } of strikes) {
    if (fault.kind !== kind) continue;
    const enough = new AbortController();
    const ended = delay(fault.ms ?? FOREVER_MS, undefined, { signal: AbortSignal.any([signal, enough.signal]) });
    try {
      await Promise.race([released, ended]);
    } finally {
      enough.abort();
      await ended.catch(() => undefined);
    }
    signal.throwIfAborted();
  }
}

/** The longest delay of a timer. */
const FOREVER_MS = 2 ** 31 - 1;
