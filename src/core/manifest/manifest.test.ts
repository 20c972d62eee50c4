import fc from 'fast-check';
import { expect, test } from 'vitest';
import { manifestData } from '../../../tests/support/models/random-manifest.js';
import { ValidationError } from '../errors.js';
import { fieldsOfManifest } from './managed-fields.js';
import { findProblems, type ManifestEntity, readManifest, writeManifest } from './manifest.js';

/** The example of the documentation. */
const EXAMPLE = {
  namespace: 'default',
  system: { onUnavailable: 'block', limits: ['rpm:100/min'] },
  resources: { 'gpt-4': { limits: ['tpm:10000/min:50000', 'slots:20/concurrent'] } },
  entities: {
    'proj-1': { name: 'Production' },
    'user-1': {
      parent: 'proj-1',
      cascade: true,
      default: { limits: ['rpm:60/min@2'] },
      resources: { 'gpt-4': { limits: ['rpm:600/min'] } },
    },
  },
};

function entities(all: Readonly<Record<string, unknown>>): unknown {
  return { namespace: 'default', entities: all };
}

/** The path and the expectation of every problem. */
function problemsOf(data: unknown): [path: string, expected: string, at: string][] {
  return findProblems(data).map(({ path, expected, at }) => [path, expected, at]);
}

const OBJECT = 'an object';

test('a manifest is read into its objects with the wanted fields of each', () => {
  expect([...fieldsOfManifest(readManifest(EXAMPLE))]).toEqual([
    ['system', { limits: ['rpm:100/min'], onUnavailable: 'block' }],
    ['resource#gpt-4', { limits: ['tpm:10000/min:50000', 'slots:20/concurrent'] }],
    ['record#proj-1', { name: 'Production' }],
    ['record#user-1', { parent: 'proj-1', cascade: true }],
    ['entity_default#user-1', { limits: ['rpm:60/min@2'] }],
    ['entity#user-1#gpt-4', { limits: ['rpm:600/min'] }],
  ]);
});

test('a manifest that is written and read again is the same', () => {
  expect(writeManifest(readManifest(EXAMPLE))).toEqual(EXAMPLE);
  fc.assert(
    fc.property(manifestData, (data) => {
      const manifest = readManifest(data);
      const written = writeManifest(manifest);
      expect(readManifest(written)).toEqual(manifest);
      expect(readManifest(JSON.parse(JSON.stringify(written)))).toEqual(manifest);
    }),
    { numRuns: 500 },
  );
});

test.each<[string, ManifestEntity | null, boolean]>([
  ['nothing', null, true],
  ['an empty object', {}, true],
  ['a name', { name: '' }, true],
  ['a parent', { parent: 'p' }, true],
  ['cascade', { cascade: false }, true],
  ['metadata', { metadata: {} }, true],
  ['limits alone', { default: { limits: ['a:1/min'] } }, false],
  ['limits of a resource alone', { resources: { r: { limits: ['a:1/min'] } } }, false],
  ['limits and a name', { name: 'N', default: { limits: ['a:1/min'] } }, true],
])('an entity with %s gets a record only if the manifest asks for one', (_, entity, wantsRecord) => {
  const { record } = readManifest(entities({ e: entity })).entities.get('e')!;
  expect(record !== null).toBe(wantsRecord);
});

test('names such as __proto__ are read as plain names', () => {
  const odd = JSON.parse(
    '{"namespace":"default","entities":{"__proto__":{"metadata":{"__proto__":{"a":1}}},"constructor":null}}',
  ) as unknown;
  const manifest = readManifest(odd);
  expect([...manifest.entities.keys()]).toEqual(['__proto__', 'constructor']);
  expect(JSON.stringify(writeManifest(manifest))).toBe(JSON.stringify(odd).replace('null', '{}'));
});

test('a key that YAML reads as null has no entries', () => {
  const manifest = readManifest({ namespace: 'default', resources: null, entities: null });
  expect([manifest.resources.size, manifest.entities.size]).toEqual([0, 0]);
  expect(readManifest({ namespace: 'default', system: undefined })).toEqual(manifest);
});

test('a manifest keeps a copy of metadata, as JSON would', () => {
  const metadata = { deep: [{ n: -0 }], none: undefined };
  const { record } = readManifest(entities({ e: { metadata } })).entities.get('e')!;
  metadata.deep.push({ n: 1 });
  expect(record).toEqual({ metadata: { deep: [{ n: 0 }] } });
});

test.each<[string, unknown, [string, string, string?][]]>([
  ['nothing at all', null, [['', OBJECT]]],
  ['a list', [EXAMPLE], [['', OBJECT]]],
  ['a date', new Date(0), [['', OBJECT]]],
  ['a map', new Map(), [['', OBJECT]]],
  ['no namespace', {}, [['namespace', 'a namespace name']]],
  ['a namespace that is none', { namespace: 'a b' }, [['namespace', 'a namespace name']]],
  ['a namespace that is a number', { namespace: 7 }, [['namespace', 'a namespace name']]],
  [
    'a field that is misspelt',
    { namespace: 'default', resource: {} },
    [['resource', 'one of the fields namespace, system, resources, entities (did you mean resources?)', 'key']],
  ],
  [
    'a field that resembles no known field',
    { namespace: 'default', ['__proto__x']: {} },
    [['__proto__x', 'one of the fields namespace, system, resources, entities', 'key']],
  ],
  ['a system without anything', { namespace: 'default', system: {} }, [['system', 'an object with `limits` or']]],
  ['a system of nothing', { namespace: 'default', system: null }, [['system', OBJECT]]],
  [
    'an unknown outage policy',
    { namespace: 'default', system: { onUnavailable: 'open' } },
    [['system.onUnavailable', 'one of block, allow, local']],
  ],
  ['a list of resources', { namespace: 'default', resources: ['gpt-4'] }, [['resources', OBJECT]]],
  ['a resource of nothing', { namespace: 'default', resources: { r: null } }, [['resources.r', OBJECT]]],
  [
    'a resource without limits',
    { namespace: 'default', resources: { r: {} } },
    [['resources.r', 'an object with `limits`']],
  ],
  [
    'a resource with an illegal name',
    { namespace: 'default', resources: { 'a b': { limits: ['a:1/min'] } } },
    [['resources["a b"]', 'a resource name', 'key']],
  ],
  [
    'limits that are not a list',
    { namespace: 'default', resources: { r: { limits: 'a:1/min' } } },
    [['resources.r.limits', 'a list']],
  ],
  ['no limits', { namespace: 'default', system: { limits: [] } }, [['system.limits', 'a list of at least one limit']]],
  [
    'a limit that cannot be read',
    { namespace: 'default', system: { limits: ['a:1/min', 'rpm:100', 7, null] } },
    [
      ['system.limits[1]', 'a limit such as'],
      ['system.limits[2]', 'a limit such as'],
      ['system.limits[3]', 'a limit such as'],
    ],
  ],
  [
    'a limit that is out of range',
    { namespace: 'default', system: { limits: ['rpm:9999999999999/min', 'wcu:1/min'] } },
    [
      ['system.limits[0]', 'a limit whose rpm.capacity is a whole number'],
      ['system.limits[1]', 'a limit whose limit.name is a limit name'],
    ],
  ],
  [
    'two limits with the same name',
    { namespace: 'default', system: { limits: ['a:1/min', 'a:2/min'] } },
    [['system.limits[1]', 'without a second limit named a']],
  ],
  [
    'more limits than fit into one write',
    { namespace: 'default', system: { limits: Array.from({ length: 33 }, (_, at) => `l${at}:1/min`) } },
    [['system.limits', 'at most 32 limits']],
  ],
  ['an entity whose id is none', entities({ 'a#b': {} }), [['entities["a#b"]', 'an entity id', 'key']]],
  ['an entity that is text', entities({ a: 'x' }), [['entities.a', OBJECT]]],
  [
    'limits directly under an entity',
    entities({ a: { limits: ['a:1/min'] } }),
    [
      [
        'entities.a.limits',
        'one of the fields name, parent, cascade, bypass, metadata, paused, default, resources',
        'key',
      ],
    ],
  ],
  ['a name that is no text', entities({ a: { name: 7 } }), [['entities.a.name', 'text']]],
  ['a name of nothing', entities({ a: { name: null } }), [['entities.a.name', 'text']]],
  ['a parent that is no id', entities({ a: { parent: '' } }), [['entities.a.parent', 'an entity id']]],
  ['a cascade that is text', entities({ a: { cascade: 'yes' } }), [['entities.a.cascade', 'true or false']]],
  ['a pause that is true', entities({ a: { paused: true } }), [['entities.a.paused', OBJECT]]],
  [
    'a pause without a reason, with an end in no zone, and with a misspelt field',
    entities({ a: { paused: {} }, b: { paused: { reason: 'x', until: '2027-01-31' } }, c: { paused: { reson: 'x' } } }),
    [
      ['entities.a.paused.reason', 'a string of 1 to 256 characters'],
      ['entities.b.paused.until', 'an instant in UTC'],
      ['entities.c.paused.reson', 'did you mean reason', 'key'],
      ['entities.c.paused.reason', 'a string of 1 to 256 characters'],
    ],
  ],
  ['metadata that is a list', entities({ a: { metadata: [] } }), [['entities.a.metadata', OBJECT]]],
  [
    'metadata that JSON cannot represent',
    entities({ a: { metadata: { x: [Number.NaN], 'y.z': 1n, w: new Date(0) } } }),
    [
      ['entities.a.metadata.x[0]', 'plain data that JSON can hold'],
      ['entities.a.metadata["y.z"]', 'plain data that JSON can hold'],
      ['entities.a.metadata.w', 'plain data that JSON can hold'],
    ],
  ],
  [
    'an entity without resources',
    entities({ a: { resources: {} } }),
    [['entities.a.resources', 'an object with at least']],
  ],
  ['an entity with a default of nothing', entities({ a: { default: null } }), [['entities.a.default', OBJECT]]],
  ['an entity that is its own parent', entities({ a: { parent: 'a' } }), [['entities.a.parent', 'another entity']]],
  [
    'a cycle of parents, and entities that lead into it',
    entities({ a: { parent: 'b' }, b: { parent: 'c' }, c: { parent: 'b' } }),
    [
      ['entities.a.parent', 'above the entity'],
      ['entities.b.parent', 'above the entity'],
      ['entities.c.parent', 'above the entity'],
    ],
  ],
])('a manifest is refused for %s', (_, data, expected) => {
  const found = problemsOf(data);
  expect(found).toEqual(expected.map(([path, text, at = 'value']) => [path, expect.stringContaining(text), at]));
  expect(() => readManifest(data)).toThrow(ValidationError);
});

test('a manifest may have a chain of eight levels, but not of nine', () => {
  const chain = (levels: number): unknown =>
    entities(
      Object.fromEntries(
        Array.from({ length: levels }, (_, at) => [`e${at}`, at === 0 ? {} : { parent: `e${at - 1}` }]),
      ),
    );
  expect(problemsOf(chain(8))).toEqual([]);
  expect(problemsOf(chain(9))).toEqual([['entities.e8.parent', 'at the end of at most 8 levels', 'value']]);
});

test('a manifest is refused for data that is too deep and for data that contains itself', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const [problem] = findProblems(entities({ a: { metadata: circle } }));
  expect(problem?.expected).toBe('at most 500 levels deep');
});

test('the error names the path of the first problem and the number of the others', () => {
  const bad = { namespace: 'default', entities: { a: { b: 1, c: 2 }, d: 7 } };
  expect(() => readManifest(bad)).toThrow(
    expect.objectContaining({
      code: 'input.invalid',
      field: 'entities.a.b',
      message: expect.stringMatching(/^Expected `entities\.a\.b` to be .*, got "b" \(and 2 more problems\)$/),
    }),
  );
  expect(() => readManifest(7)).toThrow('Expected `manifest` to be an object, got 7');
});

test('reading any data either succeeds or throws a ValidationError', () => {
  const anything = fc.anything({
    withBigInt: true,
    withNullPrototype: true,
    withDate: true,
    withMap: true,
    withSparseArray: true,
  });
  const spoiled = fc.tuple(manifestData, fc.array(fc.nat(), { maxLength: 5 }), anything).map(([data, way, value]) => {
    const copy = structuredClone(data) as unknown as Record<string, unknown>;
    let place = copy;
    for (const [at, step] of way.entries()) {
      const keys = Object.keys(place);
      const key = keys[step % Math.max(1, keys.length)] ?? 'x';
      const next = place[key];
      if (at === way.length - 1 || typeof next !== 'object' || next === null) {
        place[key] = value;
        break;
      }
      place = next as Record<string, unknown>;
    }
    return copy;
  });
  const counts = { read: 0, refused: 0 };
  fc.assert(
    fc.property(fc.oneof(anything, spoiled), (data) => {
      try {
        readManifest(data);
        counts.read += 1;
      } catch (error) {
        expect(error).toBeInstanceOf(ValidationError);
        counts.refused += 1;
      }
    }),
    { numRuns: 2_000 },
  );
  expect(Math.min(counts.read, counts.refused)).toBeGreaterThan(0);
});
