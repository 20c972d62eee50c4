import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  change,
  enter,
  openStores,
  START_MS,
  startTable,
  type Stores,
  type TestTable,
} from '../../../../tests/support/dynamodb/stores.js';
import type { Call } from '../../../backend.js';
import { findEngine } from '../../../testing/dynamodb/index.js';
import { createNamespaceStore } from '../stores/namespaces.js';
import { createGates, type Gates } from './gates.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

describe.skipIf(found.status === 'unavailable')(`the pass of the gates${reason}`, () => {
  let engine: TestTable;
  let stores: Stores;
  let requests = 0;

  beforeAll(async () => {
    engine = await startTable();
    stores = openStores(engine.transport, (_operation, input, forward) => {
      requests += 1;
      return forward(input);
    });
  });
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const admits = ({ pass }: Gates, { namespaceId, nowMs }: Call): boolean =>
    namespaceId === pass.namespaceId && nowMs >= pass.fromMs && nowMs < pass.untilMs;

  async function admitted(): Promise<{ readonly gates: Gates; readonly call: Call }> {
    const { call } = await enter(stores);
    const gates = createGates(stores.table);
    await gates.check(call);
    await gates.check(call);
    return { gates, call };
  }

  test('a pass admits the calls of its namespace until a record must be read again', async () => {
    const { gates, call } = await admitted();
    expect(gates.pass).toEqual({ namespaceId: call.namespaceId, fromMs: START_MS, untilMs: START_MS + 48_000 });
  });

  test('a pass ends at once when this process deletes the namespace', async () => {
    const { gates, call } = await admitted();
    const registry = createNamespaceStore(stores.table, gates);
    await registry.delete(change(), `case-${call.namespaceId}`);
    expect(admits(gates, call)).toBe(false);
    await expect(gates.check(call)).rejects.toMatchObject({ code: 'namespace.missing' });
  });

  test('a pass ends when the version of the table was read', async () => {
    const { gates, call } = await admitted();
    await gates.versions.check({ ...call, nowMs: START_MS + 120_000 });
    expect(admits(gates, call)).toBe(false);
  });

  test('after any history of calls a pass admits only calls that the gates admit without a request', async () => {
    const [one, other] = [await enter(stores), await enter(stores)];
    let passed = 0;
    const steps = fc.record({
      what: fc.constantFrom(
        'check',
        'check',
        'check',
        'check',
        'remember',
        'remember deleted',
        'forget',
        'read the version',
      ),
      isOther: fc.boolean(),
      passMs: fc.constantFrom(0, 0, 0, 1, 1, 1_000, 30_000, 47_999, 48_000, 60_000, 120_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 20 }), async (history) => {
        const gates = createGates(stores.table);
        let nowMs = START_MS;
        for (const { what, isOther, passMs } of history) {
          nowMs += passMs;
          const { id, call: first } = isOther ? other : one;
          const call = { ...first, nowMs };
          const namespace = { id, name: `case-${id}`, status: 'active', createdAtMs: START_MS } as const;
          if (what === 'remember') gates.remember(namespace, nowMs);
          if (what === 'remember deleted') gates.remember({ ...namespace, status: 'deleted' }, nowMs);
          if (what === 'forget') gates.forget(id);
          if (what === 'read the version') await gates.versions.check(call);
          if (what === 'check' && !admits(gates, call))
            await Promise.resolve(call)
              .then(gates.check)
              .catch(() => {});
          if (!admits(gates, call)) continue;
          passed += 1;
          const before = requests;
          expect(gates.check(call)).toBeUndefined();
          expect(requests).toBe(before);
        }
      }),
      { numRuns: 100 },
    );
    expect(passed).toBeGreaterThan(20);
  });
});
