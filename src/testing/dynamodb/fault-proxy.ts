import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ValidationError } from '../../core/errors.js';
import { Random } from '../conformance/random.js';
import { parseBody, parseRequest } from './dynamo-request.js';
import { answerOf, datedHeaders } from './exchange.js';
import { isDecisive, type Fault } from './fault.js';
import { type FaultRule, FaultRules, type InjectedFault, type Strike } from './fault-rules.js';
import { readAll } from './forward.js';
import { ProxyLog, type RequestLog } from './request-log.js';

export interface FaultProxyOptions {
  /** The same seed gives the same chances to the same sequence of requests; 1 unless given. */
  readonly seed?: number;
  /** Keeps every request, answer and consumed capacity; otherwise requests are only counted. */
  readonly record?: boolean;
  /**
   * Adds `ReturnConsumedCapacity: INDEXES` on the way, for clients that do not ask. It changes what the client signed,
   * as partial batches do: not for engines that verify signatures (ExtendDB).
   */
  readonly askForCapacity?: boolean;
}

/** A proxy in front of an engine, which counts requests and makes them fail on purpose. */
export interface FaultProxy extends AsyncDisposable {
  /** Where clients connect to instead of the engine. */
  readonly endpoint: string;
  readonly requests: RequestLog;
  /** Puts a fault in force, for the requests that fit the rule: all of them unless given. */
  readonly inject: (fault: Fault, rule?: FaultRule) => InjectedFault;
  /** Ends all faults; what they held back goes on. */
  readonly heal: () => void;
  /** Breaks every connection and refuses new ones, until `accept`. */
  readonly refuse: () => Promise<void>;
  /** Listens again, on the same port. */
  readonly accept: () => Promise<void>;
  /** Ends the proxy, not the engine. Rejects if a rule of the test's own threw. */
  readonly stop: () => Promise<void>;
}

/** Less than any engine's own: a connection that the engine closes just now would lose a request by itself. */
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
      // A predicate of the test threw: the client sees a broken connection, the test sees why when it stops the proxy.
      mistakes.push(error);
      throw error;
    }
  };

  const server = createServer((incoming, outgoing) => {
    // The client left, the engine broke off, or the proxy ends: in each case the connection breaks.
    serve(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  // Clients decide how long connections live.
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

/** Waits as long as the faults of this kind hold the request back; rejects when the proxy ends meanwhile. */
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

/** The longest that a timer can be. */
const FOREVER_MS = 2 ** 31 - 1;
