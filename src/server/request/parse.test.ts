import { describe, expect, test } from 'vitest';
import { Limit } from '../../core/limit.js';
import { requestServer } from '../../../tests/support/server/request-server.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe('the sentence of a bad request', () => {
  test.each([
    [{ ...ASK, consume: { rpm: 0.5 } }, 'Expected `body.consume.rpm` to be a whole number, got 0.5'],
    [{ ...ASK, consume: { rpm: -1 } }, 'Expected `body.consume.rpm` to be at least 0, got -1'],
    [{ ...ASK, consumed: {} }, 'Expected `body.consumed` to be a field of this operation, got "consumed"'],
    [{ entityId: 'user-1' }, 'Expected `body.resource` to be given, got undefined'],
    [{ ...ASK, entityId: '' }, 'Expected `body.entityId` to be at least 1 long, got ""'],
    [{ ...ASK, entityId: 5 }, 'Expected `body.entityId` to be a string, got 5'],
    [{ ...ASK, portable: 1 }, 'Expected `body.portable` to be true or false, got 1'],
    [[], 'Expected `body.entityId` to be given, got undefined (and 1 more problem)'],
    ['7', 'Expected `body` to be an object, got 7'],
  ])('%j: %s', async (body, sentence) => {
    const { send } = await requestServer();
    expect(await (await send('POST /v1/acquire', { body })).json()).toMatchObject({ status: 400, detail: sentence });
  });

  test('an instant that is none names the expected form', async () => {
    const { send } = await requestServer();
    const response = await send('GET /v1/usage?resource=gpt-4&window=hourly&from=yesterday');
    expect(await response.json()).toMatchObject({ expected: 'an instant such as 2026-01-31T12:00:00.000Z' });
  });
});

describe('names that an object has anyway', () => {
  test.each(['__proto__', 'constructor', 'prototype'])('an amount of %s is refused, not left out', async (name) => {
    const { send, limiter } = await requestServer();
    const body = `{"entityId":"user-1","resource":"gpt-4","consume":{"rpm":1,"${name}":5}}`;
    const response = await send('POST /v1/acquire', { body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining(name) as string });
    expect((await limiter.buckets.list({ resource: 'gpt-4' })).items).toEqual([]);
  });

  test.each(['constructor', 'prototype'])('a limit named %s is taken and settled like any other', async (name) => {
    const { send, limiter } = await requestServer({}, [Limit.perMinute(name, 10)]);
    const key = { entityId: 'user-1', resource: 'gpt-4' };
    const acquired = await send('POST /v1/acquire', { body: { ...key, consume: { [name]: 4 }, portable: true } });
    const { lease } = (await acquired.json()) as { readonly lease: { readonly token: string } };
    await send('POST /v1/leases/settle', { body: { token: lease.token, amounts: { [name]: 7 } } });
    expect(Object.entries(await limiter.available(key))).toEqual([[name, 3]]);
  });

  test.each(['constructor', 'prototype'])('a wrong amount of %s is refused with its field', async (name) => {
    const { send } = await requestServer({}, [Limit.perMinute(name, 10)]);
    const body = { entityId: 'user-1', resource: 'gpt-4', consume: { [name]: -1 } };
    const response = await send('POST /v1/acquire', { body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ field: `body.consume.${name}`, expected: 'at least 0' });
  });

  test('metadata with the key __proto__ is refused, and constructor is a key like any other', async () => {
    const { send } = await requestServer();
    const create = (id: string, name: string) =>
      send('POST /v1/entities', { body: `{"id":"${id}","metadata":{"${name}":1}}` });
    expect((await create('proj-1', '__proto__')).status).toBe(400);
    expect((await create('proj-2', 'constructor')).status).toBe(201);
    const read = (await (await send('GET /v1/entities/proj-2')).json()) as { readonly metadata: object };
    expect(Object.entries(read.metadata)).toEqual([['constructor', 1]]);
  });
});
