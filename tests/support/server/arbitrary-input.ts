import { toJsonSchema } from '@valibot/to-json-schema';
import fc from 'fast-check';
import type { GenericSchema } from 'valibot';

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
}

/** Values that reach the handlers, by the name of the field. Some of them are not legal for the library. */
const BY_NAME: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  entityId: fc.constantFrom('user-1', 'user-2', 'proj-1', 'a b', '$x', ''),
  parentId: fc.constantFrom('proj-1', 'user-1', 'nobody'),
  id: fc.constantFrom('user-1', 'user-2', 'proj-1', 'new-1', '#', 'x'.repeat(300)),
  name: fc.constantFrom('default', 'other', 'a b', 'Production'),
  resource: fc.constantFrom('gpt-4', 'gpt-5', 'a~b', '_x', ''),
  limits: fc.array(
    fc.constantFrom(
      'rpm:10/min',
      'tpm:1000/min:5000',
      'slots:2/concurrent',
      'tpm:unlimited',
      'rpm:5',
      'rpm:1/min',
      'x',
    ),
    { maxLength: 3 },
  ),
  from: fc.constantFrom('2026-01-01T00:00:00.000Z', 'yesterday'),
  to: fc.constantFrom('2027-01-01T00:00:00.000Z', '2026'),
  after: fc.constantFrom('', 'x', 'user-1'),
  limit: fc.constantFrom('1', '1000', '0', '5000', 'many'),
  namespace: fc.constantFrom('default', 'other'),
  leaseTtlMs: fc.constantFrom(5_000, 60_000, 1, 0.5),
  timeoutMs: fc.constantFrom(0, 1, 5, -1),
  consume: amountsOf(0),
  amounts: amountsOf(0),
};

function amountsOf(least: number): fc.Arbitrary<unknown> {
  const amount = fc.oneof(fc.integer({ min: least, max: 12 }), fc.constantFrom(1e12, 1e13, 0.5, -1, '1', null));
  return fc.dictionary(fc.constantFrom('rpm', 'tpm', 'slots', 'rpn', 'constructor'), amount, { maxKeys: 3 });
}

/** Mostly values that the schema accepts, and some that it does not. */
export function arbitraryInput(schema: GenericSchema): fc.Arbitrary<unknown> {
  const json = toJsonSchema(schema, { target: 'draft-2020-12', errorMode: 'ignore' }) as JsonSchema;
  return fc.oneof({ weight: 9, arbitrary: arbitraryOf(json) }, { weight: 1, arbitrary: fc.jsonValue() });
}

function arbitraryOf(schema: JsonSchema, name = ''): fc.Arbitrary<unknown> {
  const known = BY_NAME[name];
  if (known !== undefined) return known;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum, 'none of them');
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => arbitraryOf(one, name)));
  switch (typeof schema.type === 'string' ? schema.type : schema.type?.[0]) {
    case 'object':
      return objectOf(schema);
    case 'array':
      return fc.array(arbitraryOf(schema.items ?? {}), { maxLength: 4 });
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return fc.oneof(fc.integer({ min: schema.minimum ?? -5, max: Math.min(schema.maximum ?? 50, 50) }), fc.double());
    case 'string':
      return fc.oneof(fc.string({ maxLength: 20 }), fc.constantFrom('user-1', 'gpt-4', 'true'));
    case undefined:
    default:
      return fc.jsonValue();
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: JsonSchema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, arbitraryOf(field, name)]),
  );
  const object = fc.record(fields, { requiredKeys: required.filter((name) => name in fields) });
  if (typeof additionalProperties !== 'object') return object;
  return fc
    .tuple(object, fc.dictionary(fc.string({ maxLength: 8 }), arbitraryOf(additionalProperties), { maxKeys: 3 }))
    .map(([fixed, free]) => ({ ...free, ...fixed }));
}
