import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { buildOpenApi } from './openapi.js';
import { OPERATIONS } from './operations/index.js';

const document = buildOpenApi(OPERATIONS, '1.2.3');

test('the document of all operations is valid OpenAPI 3.1', async () => {
  const validator = new Validator();
  const result = await validator.validate(structuredClone(document));
  expect(result).toEqual({ valid: true });
  expect(validator.version).toBe('3.1');
});

test('every operation is in the document once, under its own id', () => {
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map((entry) => (entry as { readonly operationId: string }).operationId),
  );
  expect(ids.toSorted()).toEqual(OPERATIONS.map(({ id }) => id).toSorted());
  expect(new Set(ids).size).toBe(ids.length);
});

test('every parameter in a path is described', () => {
  for (const { path, params, id } of OPERATIONS) {
    const named = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
    const described = Object.keys((params as { readonly entries?: object } | null)?.entries ?? {});
    expect(described, id).toEqual(named);
  }
});
