import { AsyncLocalStorage } from 'node:async_hooks';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { type LimitedFetch, limitFetch, type LimitFetchOptions } from '../../../src/integrations/llm/index.js';
import { LimiterMetrics } from '../../../src/integrations/telemetry/limiter-metrics.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type ProviderCall, type ProviderPlan, startProvider, wordsIn } from '../../../src/testing/provider/index.js';
import { CLIENTS } from './clients.js';
import { consumedOf, MODEL } from './world.js';

const CONCURRENCY = 24;
const CAPACITY = 100_000_000;
const SLOTS = 50;
const MAX_OUTPUT = 60;
/** The other clients drop a stream that is left by `break`, without cancelling it. */
const CANCEL_ON_BREAK = ['openai chat', 'openai responses', 'anthropic', ...Object.keys(CLIENTS).filter(isAi6)];

function isAi6(name: string): boolean {
  return name.startsWith('ai 6');
}

/** One call, what the provider has counted, and what Headgate has charged for it. */
export interface MixedCall {
  readonly id: string;
  readonly client: string;
  readonly stream: boolean;
  readonly intent: 'complete' | 'abort' | 'error';
  /** The chunk of a stream at which its caller leaves. */
  readonly abortAt: number;
  /** Whether the request states a maximum of its output. */
  readonly isBounded: boolean;
  /** The chunks of a stream that its caller has got, each at most a token. */
  readonly chunks: number;
  readonly outcome: 'answered' | 'failed';
  readonly charged: number;
  /** null: the provider never got the call. */
  readonly served: ProviderCall | null;
}

export interface MixedReport {
  readonly calls: readonly MixedCall[];
  readonly slotsHeld: number;
  readonly leases: number;
  readonly granted: number;
  readonly ended: number;
  readonly upstreamTokens: number;
  readonly errors: readonly string[];
  /** Everything that was printed, emitted or counted. */
  readonly output: string;
}

type Random = () => number;

/** The same calls for the same seed (mulberry32). */
function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Intention {
  readonly id: string;
  readonly client: string;
  readonly stream: boolean;
  readonly intent: MixedCall['intent'];
  readonly abortAt: number;
  readonly way: 'abort' | 'break';
  readonly prompt: string;
  readonly isBounded: boolean;
  readonly plan: ProviderPlan;
}

/**
 * `exact`: words are counted, as the provider does. `low`: characters / 4 finds half of the words, which have one letter.
 * `learned`: the calls of a client share a `limitFetch`, which learns from them, and some state no maximum.
 */
export type Estimates = 'exact' | 'low' | 'learned';

/** The clients of Anthropic always state one. */
const MAY_BE_UNBOUNDED = Object.keys(CLIENTS).filter((name) => !name.endsWith('anthropic'));

function intend(id: string, random: Random, estimates: Estimates): Intention {
  const names = Object.keys(CLIENTS);
  const client = names[Math.floor(random() * names.length)]!;
  const stream = random() < 0.3;
  const draw = random();
  // A third of the streams is 10 % of all calls. Some others are aborted before their answer.
  const aborted = stream ? 1 / 3 : 0.03;
  const intent = draw < 0.05 ? 'error' : draw < 0.05 + aborted ? 'abort' : 'complete';
  const outputTokens = 1 + Math.floor(random() * MAX_OUTPUT);
  const breaks = stream && random() < 0.4;
  const error = breaks ? { breakAfter: Math.floor(random() * outputTokens) } : failure(random);
  return {
    id,
    client,
    stream,
    intent,
    abortAt: 1 + Math.floor(random() * outputTokens),
    way: random() < 0.5 && CANCEL_ON_BREAK.includes(client) ? 'break' : 'abort',
    prompt: Array.from({ length: 1 + Math.floor(random() * 80) }, (_, at) =>
      estimates === 'exact' ? `w${at}` : 'w',
    ).join(' '),
    isBounded: estimates !== 'learned' || !MAY_BE_UNBOUNDED.includes(client) || random() < 0.5,
    plan: { outputTokens, ...(intent === 'error' ? error : {}) },
  };
}

/** The call that the code runs for: the calls of a client may share a `fetch`. */
interface Running {
  readonly intention: Intention;
  readonly controller: AbortController;
}

/** A refusal of the rate pauses the upstream key for a moment: the other calls wait. */
function failure(random: Random): ProviderPlan {
  const draw = Math.floor(random() * 6);
  const status = [400, 500, 503, 529][draw];
  if (status !== undefined) return { status };
  return { refusal: { format: draw === 4 ? 'openai' : 'google', waitMs: 5 } };
}

/**
 * Calls of all clients at once: 30 % streams, 10 % streams that are aborted at any chunk, 5 % failing. Each call is an
 * entity of its own below one key.
 */
export async function runMixedCalls(count: number, seed: number, estimates: Estimates = 'exact'): Promise<MixedReport> {
  const random = seeded(seed);
  const intentions = Array.from({ length: count }, (_, at) => intend(`call-${at}`, random, estimates));
  const plans = new Map(intentions.map(({ id, plan }) => [id, plan]));
  await using provider = await startProvider({ plan: ({ callId }) => plans.get(callId ?? '') ?? {} });
  const metrics = new LimiterMetrics();
  const output: string[] = [];
  const errors: string[] = [];
  let [granted, ended] = [0, 0];
  await using limiter = await RateLimiter.open(memory(), {
    limits: [Limit.perDay('rpm', CAPACITY), Limit.perDay('tpm', CAPACITY), Limit.concurrent('slots', SLOTS)],
    onError: (error, where) => errors.push(`${where}: ${String(error)}`),
    onEvent: (event) => {
      metrics.onEvent(event);
      output.push(JSON.stringify(event));
      if (event.type === 'decision' && event.granted) granted += 1;
      if (event.type === 'lease-end') ended += 1;
    },
  });
  await limiter.entities.create({ id: 'upstream' });
  for (const { id } of intentions) await limiter.entities.create({ id, parentId: 'upstream', cascade: true });

  const outcomes = new Map<string, MixedCall['outcome']>();
  const passed = new Map<string, number>();
  const current = new AsyncLocalStorage<Running>();
  const running = (): Running => current.getStore()!;
  const send: typeof fetch = async (input, init) => {
    const { intention, controller } = running();
    if (intention.intent === 'abort' && !intention.stream) setImmediate(() => controller.abort());
    const headers = { ...Object.fromEntries(new Headers(init?.headers)), 'x-call-id': intention.id };
    return fetch(input, { ...init, headers });
  };
  const limitedFor: LimitFetchOptions = {
    limiter,
    entityId: () => running().intention.id,
    upstream: () => 'upstream',
    measures: { rpm: 'calls', tpm: 'tokens', slots: 'calls' },
    ...(estimates === 'exact' ? { countTokens: wordsIn } : {}),
    ...(estimates === 'learned' ? { output: 'typical' } : {}),
    onError: (error, where) => errors.push(`${where}: ${String(error)}`),
    onProviderThrottle: (throttle) => output.push(JSON.stringify(throttle)),
  };
  const shared = new Map<string, LimitedFetch>();
  const limitedOf = (client: string): LimitedFetch => {
    if (estimates !== 'learned') return limitFetch(send, limitedFor);
    const limited = shared.get(client) ?? limitFetch(send, limitedFor);
    shared.set(client, limited);
    return limited;
  };
  const make = async (intention: Intention): Promise<void> => {
    const { id, client, stream, intent, abortAt, way, prompt, isBounded } = intention;
    const controller = new AbortController();
    const limited = limitedOf(client);
    let chunks = 0;
    const onChunk = (): boolean => {
      chunks += 1;
      passed.set(id, chunks);
      if (intent !== 'abort' || chunks < abortAt) return true;
      if (way === 'abort') controller.abort();
      return way === 'abort';
    };
    const call = {
      url: provider.url,
      fetch: limited,
      prompt,
      max: isBounded ? MAX_OUTPUT : undefined,
      stream,
      signal: controller.signal,
      onChunk,
    };
    try {
      await current.run({ intention, controller }, async () => CLIENTS[client]!(call));
      outcomes.set(id, 'answered');
    } catch (error) {
      output.push(`${String(error)} ${error instanceof Error ? error.stack : ''}`);
      outcomes.set(id, 'failed');
    }
    // A `fetch` that is shared has other calls under way.
    if (estimates !== 'learned') await limited.settled();
  };
  const queue = intentions.values();
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const intention of queue) await make(intention);
    }),
  );
  for (const limited of shared.values()) await limited.settled();
  while (provider.running > 0) await new Promise((resolve) => setImmediate(resolve));

  const served = new Map(provider.calls.map((call) => [call.callId, call]));
  const calls: MixedCall[] = [];
  for (const { id, client, stream, intent, abortAt, isBounded } of intentions) {
    const { tpm: charged } = await consumedOf(limiter, id, MODEL);
    calls.push({
      id,
      client,
      stream,
      intent,
      abortAt,
      isBounded,
      chunks: passed.get(id) ?? 0,
      outcome: outcomes.get(id)!,
      charged,
      served: served.get(id) ?? null,
    });
  }
  const upstream = await consumedOf(limiter, 'upstream', MODEL);
  return {
    calls,
    slotsHeld: upstream.slots,
    leases: (await limiter.leases.list()).items.length,
    granted,
    ended,
    upstreamTokens: upstream.tpm,
    errors,
    output: [...output, ...errors, metrics.render()].join('\n'),
  };
}

/** Sentences that name the calls whose charge is wrong. */
export function wrongCharges({ calls }: MixedReport): readonly string[] {
  return calls.flatMap(({ id, client, stream, intent, isBounded, chunks, outcome, charged, served }) => {
    const say = (expected: string): string[] => [
      `${id} (${client}${stream ? ', stream' : ''}, ${intent}, ${outcome}, ${served?.end ?? 'never sent'}): ${charged}, expected ${expected}`,
    ];
    const cost = served === null || served.status !== 200 ? 0 : served.inputTokens + served.outputTokens;
    if (served !== null && served.status !== 200) return charged === 0 ? [] : say('0');
    // The usage has reached the client: it has read the whole answer.
    if (intent === 'complete' || (intent === 'abort' && outcome === 'answered' && !stream)) {
      return charged === cost && outcome === 'answered' ? [] : say(`${cost}`);
    }
    // What the provider has generated and not delivered has no bound where the request states no maximum.
    const { inputTokens, outputTokens } = served ?? { inputTokens: 0, outputTokens: 0 };
    const least = isBounded ? cost : inputTokens + Math.min(chunks, outputTokens);
    return charged >= least ? [] : say(`at least ${least}`);
  });
}
