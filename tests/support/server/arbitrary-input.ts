import { toJsonSchema } from '@valibot/to-json-schema';
import fc from 'fast-check';
import type { GenericSchema } from 'valibot';
import { stringify } from 'yaml';

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

/** Stand for the tokens of leases that a test has made: one that holds slots, one of rates only, and one that has ended. */
export const LEASES = ['lease:slots', 'lease:rates', 'lease:ended'] as const;

/** Mostly the first values, so that most requests with many fields are valid, and each field is wrong at times. */
function mostly(valid: readonly unknown[], invalid: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 15, arbitrary: fc.constantFrom(...valid) },
    { weight: 1, arbitrary: fc.constantFrom(...invalid) },
  );
}

/** Longer than a sort key of DynamoDB may be, and short enough for the path of a request. */
const LONG = 'x'.repeat(4_000);

const limitsFile = fc.record(
  {
    namespace: mostly(['default'], ['other', 7]),
    system: fc.record({ limits: mostly([['rpm:5/min'], []], [['x'], 'rpm:5/min']) }),
    entities: fc.dictionary(
      fc.constantFrom('user-1', 'acme', 'a b'),
      mostly([{}, { metadata: { a: [1] } }, { parent: 'proj-1' }], [{ parent: 'nobody' }, null]),
      { maxKeys: 2 },
    ),
  },
  { requiredKeys: ['namespace'] },
);

/** Mostly no limits file, and often nested: deeper than a function that calls itself for each level can follow. */
const yamlText = fc
  .tuple(
    fc.constantFrom('', 'namespace: default\n', 'namespace: default\nsystem: '),
    fc.array(
      fc.tuple(
        fc.constantFrom(
          '[',
          ']',
          '{',
          '}',
          '- ',
          '? ',
          'a: ',
          '{a: ',
          '[{',
          ': ',
          '&a ',
          '*a ',
          '!x ',
          '"',
          "'",
          '\n',
          ' ',
          '|\n',
        ),
        fc.constantFrom(1, 1, 2, 90, 3_000),
      ),
      { maxLength: 6 },
    ),
  )
  .map(([head, parts]) => head + parts.map(([part, count]) => part.repeat(count)).join(''));

/** Values that reach the handlers, by the name of the field. Some of them are not legal for the library. */
const BY_NAME: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  entityId: mostly(['user-1', 'user-2', 'proj-1'], ['a b', '$x', '', '..', LONG]),
  parentId: mostly(['proj-1', 'user-1'], ['nobody', null]),
  id: mostly(['proj-1', 'proj-1', 'proj-1', 'user-1', 'new-1', LEASES[0], LEASES[1]], ['#', 'x'.repeat(300)]),
  name: mostly(['default', 'other', 'acme', 'gone'], ['a b', 'Production', LONG]),
  resource: mostly(['gpt-4', 'gpt-5'], ['a~b', '_x', '', LONG]),
  limits: fc.array(
    mostly(['rpm:10/min', 'tpm:1000/min:5000', 'slots:2/concurrent', 'tpm:unlimited'], ['rpm:5', 'rpm:1/min', 'x']),
    { maxLength: 3 },
  ),
  from: mostly(['2026-01-01T00:00:00.000Z'], ['yesterday', '2026-02-31T00:00:00Z']),
  to: mostly(['2027-01-01T00:00:00.000Z'], ['2026']),
  until: mostly(['2099-01-01T00:00:00.000Z', '2026-01-01T00:00:00Z'], ['soon']),
  forMs: mostly([1, 60_000], [0, 1e15]),
  after: mostly(['user-1'], ['', 'x', 'a b c', '\u{1f600}', '\u0000', LONG]),
  limit: mostly(['1', '1000'], ['0', '5000', 'many']),
  namespace: mostly(['default'], ['other']),
  leaseTtlMs: mostly([5_000, 60_000], [1, 0.5]),
  ttlMs: mostly([5_000, 60_000], [1, -1]),
  timeoutMs: mostly([0, 1, 5], [-1]),
  maxWaiting: mostly([0, 5], [-1]),
  version: mostly([1, 2], [0, 0.5]),
  token: mostly(LEASES, ['', 'hgl1.x.y', LONG]),
  operationId: mostly(['once', 'twice'], ['', 'a b', LONG]),
  priority: mostly(['low', 'high'], ['', 'a b', LONG]),
  onUnavailable: mostly(['block', 'allow', 'local'], ['none']),
  metadata: mostly(
    [{}, { tier: 'gold' }, { a: [{ b: null }] }],
    [[], { a: 1n.toString() }, 'text', { a: LONG.repeat(100) }],
  ),
  text: fc.oneof(
    limitsFile.map((file) => JSON.stringify(file)),
    limitsFile.map(stringify),
    yamlText,
  ),
  consume: amountsOf(0),
  amounts: amountsOf(0),
};

function amountsOf(least: number): fc.Arbitrary<unknown> {
  const amount = fc.oneof(
    { weight: 15, arbitrary: fc.integer({ min: least, max: 3 }) },
    { weight: 1, arbitrary: fc.constantFrom(11, 1e12, 1e13, 0.5, -1, '1', null) },
  );
  const entry = fc.tuple(mostly(['rpm', 'slots'], ['tpm', 'rpn', 'constructor']) as fc.Arbitrary<string>, amount);
  return fc.array(entry, { minLength: 1, maxLength: 2 }).map((entries) => Object.fromEntries(entries) as object);
}

const LEFT_OUT = Symbol('left out');

/** Mostly values that the schema accepts, and some that it does not. */
export function arbitraryInput(schema: GenericSchema): fc.Arbitrary<unknown> {
  const json = toJsonSchema(schema, { target: 'draft-2020-12', errorMode: 'ignore' }) as JsonSchema;
  return fc.oneof({ weight: 19, arbitrary: arbitraryOf(json) }, { weight: 1, arbitrary: fc.jsonValue() });
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
      return fc.oneof(fc.string({ maxLength: 20 }), fc.constantFrom('user-1', 'gpt-4', 'true', LONG));
    case undefined:
    default:
      return fc.jsonValue();
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: JsonSchema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, arbitraryOf(field, name)]),
  );
  // Three of four optional fields are left out: with many fields at once, one of them refuses nearly every request.
  const sparse = Object.entries(fields).map(([name, field]) => {
    const isRequired = required.includes(name) || name === 'consume';
    return [name, isRequired ? field : fc.oneof({ weight: 3, arbitrary: fc.constant(LEFT_OUT) }, field)] as const;
  });
  const object = fc
    .record(Object.fromEntries(sparse))
    .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== LEFT_OUT)));
  if (typeof additionalProperties !== 'object') return object;
  return fc
    .tuple(object, fc.dictionary(fc.string({ maxLength: 8 }), arbitraryOf(additionalProperties), { maxKeys: 3 }))
    .map(([fixed, free]) => ({ ...free, ...fixed }));
}
