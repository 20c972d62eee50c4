import { afterEach, describe, expect, test } from 'vitest';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch, type LimitFetchOptions } from '../../../src/integrations/llm/index.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { outage } from '../../../src/testing/outage.js';
import { ENTITY, LIMITS, type LlmWorld, llmWorld, MODEL } from '../../support/llm/world.js';

const PROMPT_TOKENS = 50;
const clock = fakeClock();
/** The tokens of the next answers; the last one is repeated. */
let outputs: number[];
/** What was held while each call ran. */
let held: number[];

let world: LlmWorld;
afterEach(async () => world?.[Symbol.asyncDispose]());

async function open(limits: readonly Limit[], options: Partial<LimitFetchOptions> = {}): Promise<LlmWorld> {
  held = [];
  const send = async (): Promise<Response> => {
    held.push((await world.consumed()).tpm - before);
    const [output = 0] = outputs.length > 1 ? outputs.splice(0, 1) : outputs;
    const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: output };
    return Response.json({ choices: [{ finish_reason: 'stop' }], usage });
  };
  const fetch = { measures: { tpm: 'tokens' }, waitMs: 0, countTokens: () => PROMPT_TOKENS, ...options } as const;
  return (world = await llmWorld({ limits, clock, send, fetch }));
}

let before = 0;

function callWith(fields: object): Parameters<typeof fetch> {
  const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hello' }], ...fields });
  return ['http://provider.test/v1/chat/completions', { method: 'POST', body }];
}

/** The statuses of calls, between which every limit becomes full. */
async function call(count: number, fields: object = {}): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let made = 0; made < count; made++) {
    before = (await world.consumed()).tpm;
    const answer = await world.fetch(...callWith(fields));
    await answer.text();
    await world.fetch.settled();
    statuses.push(answer.status);
    await clock.advance(3_600_000);
  }
  return statuses;
}

describe('output that the request does not state never makes a call impossible', () => {
  test('after one long answer, a call holds what an answer has on average, where more does not fit', async () => {
    outputs = [2_400];
    await open([Limit.perMinute('tpm', 6_000)]);
    expect(await call(4)).toEqual([200, 200, 200, 200]);
    // The first estimate, then the average, until the deviation is small enough for the amount that most answers stay below.
    expect(held.slice(0, 3)).toEqual([1_050, 2_450, PROMPT_TOKENS + 2_400 + 3 * 900]);
  });

  test('a call holds what the limit has, where the average does not fit', async () => {
    outputs = [16_000];
    await open([Limit.perMinute('tpm', 6_000)]);
    expect(await call(4)).toEqual([200, 200, 200, 200]);
    expect(held).toEqual([1_050, 6_000, 6_000, 6_000]);
  });

  test('a limit below the first estimate admits its first call', async () => {
    outputs = [100];
    await open([Limit.perMinute('tpm', 500)]);
    expect(await call(2)).toEqual([200, 200]);
    expect(held).toEqual([500, 300]);
  });

  test('the limits of a parent, and what must stay for other classes, count too', async () => {
    outputs = [2_400];
    const { limiter } = await open([Limit.perMinute('tpm', 100_000)], { priority: 'batch' });
    await limiter.entities.create({ id: 'upstream' });
    await limiter.entities.create({ id: ENTITY, parentId: 'upstream', cascade: true });
    const reserve = { batch: 0.5 };
    await limiter.config.setEntityDefault('upstream', { limits: [Limit.perMinute('tpm', 6_000, { reserve })] });
    expect(await call(3)).toEqual([200, 200, 200]);
    expect(held).toEqual([1_050, 2_450, 2_450]);
  });

  test('a typical output that is held in place of a stated maximum is no reason either', async () => {
    outputs = [2_400];
    await open([Limit.perMinute('tpm', 6_000)], { output: 'typical' });
    expect(await call(3, { max_tokens: 9_000 })).toEqual([200, 200, 200]);
    expect(held.slice(0, 2)).toEqual([1_050, 2_450]);
  });

  test('a stated maximum, an input and a blocked limit are reasons', async () => {
    outputs = [10];
    await open([Limit.perMinute('tpm', 500)]);
    expect(await call(1, { max_tokens: 451 })).toEqual([422]);
    expect(await call(1, { max_tokens: 450 })).toEqual([200]);
    await world[Symbol.asyncDispose]();
    await open([Limit.perMinute('tpm', PROMPT_TOKENS)]);
    expect(await call(1)).toEqual([422]);
    await world[Symbol.asyncDispose]();
    await open([Limit.perMinute('tpm', 0)], { measures: { tpm: 'output-tokens' } });
    expect(await call(1)).toEqual([422]);
  });
});

test('a count that no call can have does not change the estimate', async () => {
  outputs = [5e12, 100];
  await open([Limit.perMinute('tpm', 6_000)]);
  expect(await call(3)).toEqual([200, 200, 200]);
  expect(held).toEqual([1_050, 1_050, 300]);
  expect(world.errors).toEqual([]);
});

test('a call whose settlement failed does not change the estimate', async () => {
  const store = outage(memory());
  await using limiter = await RateLimiter.open(store.backend, { clock, limits: LIMITS, onError: () => {} });
  const holds: unknown[] = [];
  const send = async (): Promise<Response> => {
    holds.push((await limiter.available({ entityId: ENTITY, resource: MODEL }))['tpm']);
    if (holds.length === 1) store.start();
    return Response.json({ choices: [{ finish_reason: 'stop' }], usage: { prompt_tokens: 5, completion_tokens: 100 } });
  };
  const limited = limitFetch(send, { limiter, entityId: ENTITY, countTokens: () => 5, clock, onError: () => {} });
  for (let made = 0; made < 2; made++) {
    await (await limited(...callWith({}))).text();
    await limited.settled();
    store.end();
    await clock.advance(86_400_000);
  }
  // Both hold the first estimate.
  expect(holds).toEqual([holds[0], holds[0]]);
});
