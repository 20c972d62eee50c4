import fc from 'fast-check';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { OPERATIONS } from '../../src/server/operations/index.js';
import type { Operation } from '../../src/server/operation.js';
import type { RateLimiter } from '../../src/index.js';
import { arbitraryInput } from '../support/server/arbitrary-input.js';
import { requestServer } from '../support/server/request-server.js';

const plain = OPERATIONS.filter(({ id }) => id !== 'events');

/** Printed as its id when a property fails. */
function named(one: Operation): Operation {
  return { ...one, [fc.toStringMethod]: () => one.id } as Operation;
}

interface Call {
  readonly one: Operation;
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

const none = fc.constant({});

const call: fc.Arbitrary<Call> = fc.constantFrom(...plain.map(named)).chain((one) =>
  fc.record({
    one: fc.constant(one),
    params: (one.params === null ? none : arbitraryInput(one.params)) as fc.Arbitrary<Record<string, unknown>>,
    query: (one.query === null ? none : arbitraryInput(one.query)) as fc.Arbitrary<Record<string, unknown>>,
    body: one.body === null ? fc.constant(undefined) : arbitraryInput(one.body),
  }),
);

function routeOf({ one, params, query }: Call): string {
  const path = one.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(text(params?.[name]) || 'x'));
  const fields = Object.entries(query ?? {}).map(([name, value]): [string, string] => [name, text(value)]);
  return `${one.method.toUpperCase()} ${path}?${new URLSearchParams(fields).toString()}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

const problem = v.looseObject({
  type: v.string(),
  title: v.string(),
  status: v.number(),
  detail: v.pipe(v.string(), v.minLength(1)),
  code: v.string(),
});

/** Everything that a refused request must not change. */
async function contentsOf(opened: RateLimiter): Promise<string> {
  const namespaces = await opened.namespaces.list({ limit: 1_000 });
  if (!namespaces.items.some(({ name }) => name === 'default')) return 'the namespace was deleted';
  const limiter = await opened.in('default');
  const [entities, levels, audit, gpt4, gpt5] = await Promise.all([
    limiter.entities.list({ limit: 1_000 }),
    limiter.config.all({ limit: 1_000 }),
    limiter.audit.list({ limit: 1_000 }),
    limiter.buckets.list({ resource: 'gpt-4', limit: 1_000 }),
    limiter.buckets.list({ resource: 'gpt-5', limit: 1_000 }),
  ]);
  const buckets = [...gpt4.items, ...gpt5.items].map(({ entityId, resource, limits, holders, acquires }) => {
    const consumed = limits.map((entry) => `${entry.limit.name} ${entry.consumed}`);
    return { entityId, resource, consumed, holders, acquires };
  });
  return JSON.stringify([entities.items, levels.items.map(String), audit.items.length, namespaces.items, buckets]);
}

test('any input to any operation is answered by its schema or by a problem, and a refusal changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 12 }), async (calls) => {
      const { send, limiter } = await requestServer();
      await limiter.entities.create({ id: 'proj-1' });
      for (const one of calls) {
        const before = await contentsOf(limiter);
        const response = await send(routeOf(one), one.body === undefined ? {} : { body: one.body });
        const answer: unknown = await response.json();
        const where = `${routeOf(one)} ${JSON.stringify(one.body)} -> ${response.status} ${JSON.stringify(answer)}`;
        expect(response.status, where).toBeLessThan(500);
        if (response.status === one.one.status) {
          expect(v.safeParse(one.one.answer, answer).issues, where).toBeUndefined();
        } else {
          expect(v.safeParse(problem, answer).issues, where).toBeUndefined();
          expect(response.headers.get('content-type')).toBe('application/problem+json');
          expect(await contentsOf(limiter), where).toBe(before);
        }
      }
      await limiter.close();
    }),
    { numRuns: 100 },
  );
}, 60_000);
