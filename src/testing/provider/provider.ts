import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, completeClock, systemClock } from '../../clock.js';
import { jsonAnswer, renderEvent, streamedAnswer } from './answers.js';
import { type ProviderRequest, readProviderRequest } from './provider-request.js';
import { type ProviderQuota, Quotas } from './quota.js';
import { type RefusalFormat, renderRefusal } from './refusals.js';

/** How the provider answers one call. */
export interface ProviderPlan {
  /** Default: 16, or the maximum of the request if that is less. */
  readonly outputTokens?: number;
  /** An error with this status in place of an answer. */
  readonly status?: number;
  /** A refusal of the rate of calls. */
  readonly refusal?: { readonly format: RefusalFormat; readonly waitMs: number };
  /** The time before the answer begins. */
  readonly startDelayMs?: number;
  /** The time before each token of a stream. */
  readonly tokenDelayMs?: number;
  /** Destroys the connection of a stream after this many tokens. */
  readonly breakAfter?: number;
  /** Sends events that are no JSON between the tokens of a stream. */
  readonly malformed?: boolean;
  /** Characters of output that count no token, for large answers. */
  readonly padding?: number;
}

export interface ProviderOptions {
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock;
  /** What the provider allows before it refuses. Default: no quota. */
  readonly quota?: ProviderQuota;
  /** The form of the refusals by the quota. Default: `openai`. */
  readonly refusalFormat?: RefusalFormat;
  /** What the provider does with a request, such as a failure. Default: it answers. */
  readonly plan?: (request: ProviderRequest) => ProviderPlan;
}

/** A call as the provider counts it. */
export interface ProviderCall extends ProviderRequest {
  readonly status: number;
  /** The tokens that were generated: of an aborted stream those before the abort was noticed. */
  readonly outputTokens: number;
  readonly end: 'complete' | 'aborted' | 'broken' | 'failed' | 'refused';
}

/** A provider of models on the loopback interface. It counts the words of prompts and answers as tokens. */
export interface Provider extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`. The addresses are those of OpenAI, Azure, Anthropic and Google, below it. */
  readonly url: string;
  /** The calls that have ended, in that order. */
  readonly calls: readonly ProviderCall[];
  /** The number of calls that run. */
  readonly running: number;
  /** Closes all connections. */
  readonly stop: () => Promise<void>;
}

const DEFAULT_TOKENS = 16;

export async function startProvider(options: ProviderOptions = {}): Promise<Provider> {
  const clock = completeClock(options.clock ?? systemClock);
  const quotas = options.quota === undefined ? null : new Quotas(options.quota);
  const calls: ProviderCall[] = [];
  let running = 0;

  const serve = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.sendDate = false;
    response.setHeader('date', new Date(clock.now()).toUTCString());
    const [path = ''] = (message.url ?? '').split('?');
    const body = await readBody(message);
    const request = message.method === 'POST' ? readProviderRequest(path, parseFields(body), callIdOf(message)) : null;
    if (request === null) {
      sendJson(response, path.endsWith('/models') ? 200 : 404, { object: 'list', data: [] });
      return;
    }
    const plan = options.plan?.(request) ?? {};
    const outputTokens = plan.outputTokens ?? Math.min(DEFAULT_TOKENS, request.maxOutputTokens ?? DEFAULT_TOKENS);
    const cost = request.inputTokens + outputTokens;
    const waitMs = plan.refusal?.waitMs ?? quotas?.take(`${keyOf(message)} ${request.model}`, cost, clock.now()) ?? 0;
    if (waitMs > 0) {
      const format = plan.refusal?.format ?? options.refusalFormat ?? 'openai';
      const refusal = renderRefusal(format, waitMs, clock.now());
      calls.push({ ...request, status: refusal.status, outputTokens: 0, end: 'refused' });
      sendJson(response, refusal.status, refusal.body, refusal.headers);
      return;
    }
    calls.push({ ...request, ...(await answer(request, plan, outputTokens, response)) });
  };

  const answer = async (
    request: ProviderRequest,
    plan: ProviderPlan,
    outputTokens: number,
    response: ServerResponse,
  ): Promise<Pick<ProviderCall, 'status' | 'outputTokens' | 'end'>> => {
    if (plan.startDelayMs !== undefined) await clock.sleep(plan.startDelayMs);
    if (plan.status !== undefined && plan.status >= 400) {
      sendJson(response, plan.status, { error: { message: 'The provider failed', type: 'server_error', code: null } });
      return { status: plan.status, outputTokens: 0, end: 'failed' };
    }
    if (request.stream) return { status: 200, ...(await stream(request, plan, outputTokens, response)) };
    sendJson(response, 200, jsonAnswer(request, outputTokens, plan.padding ?? 0));
    return { status: 200, outputTokens, end: (await isDelivered(response)) ? 'complete' : 'aborted' };
  };

  const stream = async (
    request: ProviderRequest,
    plan: ProviderPlan,
    outputTokens: number,
    response: ServerResponse,
  ): Promise<Pick<ProviderCall, 'outputTokens' | 'end'>> => {
    const { before, token, after } = streamedAnswer(request, outputTokens);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    for (const event of before) response.write(renderEvent(event));
    for (let made = 0; made < outputTokens; made++) {
      if (response.destroyed) return { outputTokens: made, end: 'aborted' };
      if (made === plan.breakAfter) {
        response.destroy();
        return { outputTokens: made, end: 'broken' };
      }
      if (plan.malformed === true) response.write('data: {"broken":\n\ndata: nonsense\n\n: a comment\n\n');
      await write(response, renderEvent(token));
      if (plan.tokenDelayMs !== undefined) await clock.sleep(plan.tokenDelayMs);
    }
    if (response.destroyed) return { outputTokens, end: 'aborted' };
    for (const event of after) response.write(renderEvent(event));
    response.end();
    return { outputTokens, end: (await isDelivered(response)) ? 'complete' : 'aborted' };
  };

  const server = createServer((message, response) => {
    running += 1;
    serve(message, response)
      .catch(() => response.destroy())
      .finally(() => {
        running -= 1;
      });
  });
  // A connection that the server closes just when a client uses it again looks like a failure of the network.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  };
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    get running() {
      return running;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The tokens are written in turns of their own, so that an abort between two of them is noticed. */
async function write(response: ServerResponse, text: string): Promise<void> {
  const isRoom = response.write(text);
  await new Promise<void>((resolve) => {
    if (isRoom || response.destroyed) setImmediate(resolve);
    else {
      const go = (): void => {
        response.off('drain', go);
        response.off('close', go);
        resolve();
      };
      response.on('drain', go);
      response.on('close', go);
    }
  });
}

async function isDelivered(response: ServerResponse): Promise<boolean> {
  if (!response.writableFinished && !response.destroyed) {
    await new Promise((resolve) => {
      response.once('finish', resolve);
      response.once('close', resolve);
    });
  }
  return response.writableFinished;
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

async function readBody(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parseFields(body: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function callIdOf(message: IncomingMessage): string | null {
  const id = message.headers['x-call-id'];
  return typeof id === 'string' ? id : null;
}

const KEY_HEADERS = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key'] as const;

function keyOf({ headers }: IncomingMessage): string {
  return KEY_HEADERS.map((name) => headers[name]).find((value) => typeof value === 'string') ?? '';
}
