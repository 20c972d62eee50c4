import fc from 'fast-check';
import * as v from 'valibot';
import { expect } from 'vitest';
import type { RateLimiter } from '../../../src/index.js';
import { buildOpenApi } from '../../../src/server/openapi.js';
import { OPERATIONS } from '../../../src/server/operations/index.js';
import type { Operation } from '../../../src/server/operation.js';
import { arbitraryInput, LEASES } from './arbitrary-input.js';
import type { requestServer } from './request-server.js';

/** An operation with generated input. */
interface Call {
  readonly one: Operation;
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

const none = fc.constant({});

/** Printed as its id when a property fails. */
function named(one: Operation): Operation {
  return { ...one, [fc.toStringMethod]: () => one.id } as Operation;
}

const called = OPERATIONS.map(named);
/** Operations whose generated input seldom succeeds are called more often, so that each run has a success of each. */
const SELDOM_SUCCEEDS = new Set(['settleLease', 'adjustLease', 'endLease', 'setConfig']);
const seldom = called.filter(({ id }) => SELDOM_SUCCEEDS.has(id));

/** Calls of any operation. An event stream ends after a millisecond. */
export const calls: fc.Arbitrary<readonly Call[]> = fc.array(
  fc.constantFrom(...called, ...seldom, ...seldom).chain((one) =>
    fc.record({
      one: fc.constant(one),
      params: (one.params === null ? none : arbitraryInput(one.params)) as fc.Arbitrary<Record<string, unknown>>,
      query: (one.query === null ? none : arbitraryInput(one.query)).map((query) =>
        one.id === 'events' ? { ...(query as object), forMs: 1 } : query,
      ) as fc.Arbitrary<Record<string, unknown>>,
      body: one.body === null ? fc.constant(undefined) : arbitraryInput(one.body),
    }),
  ),
  { minLength: 1, maxLength: 12 },
);

function routeOf({ one, params, query }: Call): string {
  const path = one.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(shown(params?.[name]) || 'x'));
  const fields = Object.entries(query ?? {}).map(([name, value]): [string, string] => [name, shown(value)]);
  return `${one.method.toUpperCase()} ${path}?${new URLSearchParams(fields).toString()}`;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

const problem = v.looseObject({
  type: v.string(),
  title: v.string(),
  status: v.number(),
  detail: v.pipe(v.string(), v.minLength(1)),
  code: v.string(),
});

/** The statuses of each operation in the OpenAPI document. */
const documented: ReadonlyMap<string, readonly string[]> = new Map(
  Object.values(buildOpenApi(OPERATIONS, '1').paths)
    .flatMap((methods) => Object.values(methods) as { readonly operationId: string; readonly responses: object }[])
    .map(({ operationId, responses }) => [operationId, Object.keys(responses)]),
);

/** How often each operation had each status, such as `acquire 200`. */
export type Seen = Map<string, number>;

/** Sends the calls, and checks each answer. `contents` returns everything that a refused request must not change. */
export async function expectAnswers(
  { send, limiter }: Awaited<ReturnType<typeof requestServer>>,
  list: readonly Call[],
  contents: () => Promise<string>,
  seen: Seen,
): Promise<void> {
  await limiter.entities.create({ id: 'proj-1' });
  await limiter.namespaces.register('gone');
  await limiter.namespaces.delete('gone');
  const leases = await leasesOf(limiter);
  for (const generated of list) {
    const call = withLeases(generated, leases);
    const { one, body } = call;
    const before = await contents();
    const response = await send(routeOf(call), body === undefined ? {} : { body });
    const text = await response.text();
    const isStream = response.headers.get('content-type') === 'text/event-stream';
    const answer: unknown = isStream ? text : JSON.parse(text);
    const where = `${routeOf(call)} ${JSON.stringify(body)} -> ${response.status} ${JSON.stringify(answer)}`;
    seen.set(`${one.id} ${response.status}`, (seen.get(`${one.id} ${response.status}`) ?? 0) + 1);
    expect(response.status, where).toBeLessThan(500);
    if (response.status === one.status) {
      expect(v.safeParse(one.answer, answer).issues, where).toBeUndefined();
      continue;
    }
    expect(documented.get(one.id), where).toContain(String(response.status));
    const isDenial = one.denial !== null && [422, 429].includes(response.status);
    expect(v.safeParse(isDenial ? one.denial : problem, answer).issues, where).toBeUndefined();
    expect((answer as { readonly status: number }).status, where).toBe(response.status);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(await contents(), where).toBe(before);
  }
}

/** The ids and the tokens of three leases, by the names that stand for them. */
async function leasesOf(limiter: RateLimiter): Promise<Leases> {
  const key = { entityId: 'user-1', resource: 'gpt-4', portable: true } as const;
  const [slots, rates, ended] = [
    await limiter.acquire({ ...key, consume: { rpm: 1, slots: 1 } }),
    await limiter.acquire({ ...key, consume: { rpm: 1 } }),
    await limiter.acquire({ ...key, consume: { rpm: 1 } }),
  ];
  await ended.commit();
  const leases = await Promise.all(
    [slots, rates, ended].map(async (lease) => ({ id: lease.id, token: await lease.token() })),
  );
  return new Map(LEASES.map((name, at) => [name, leases[at] ?? { id: '', token: '' }]));
}

type Leases = ReadonlyMap<unknown, { readonly id: string; readonly token: string }>;

function withLeases(call: Call, leases: Leases): Call {
  const { body, params } = call;
  const hasToken = typeof body === 'object' && body !== null && 'token' in body;
  const id = params?.['id'];
  return {
    ...call,
    ...(hasToken ? { body: { ...body, token: leases.get(body.token)?.token ?? body.token } } : {}),
    ...(leases.has(id) ? { params: { ...params, id: leases.get(id)?.id } } : {}),
  };
}
