import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { manifestData } from '../../../tests/support/models/random-manifest.js';
import { ValidationError } from '../../core/errors.js';
import { readManifest } from '../../core/manifest/manifest.js';
import { parseManifestFile } from './manifest-file.js';
import { printManifest } from './print-manifest.js';

function parse(text: string): unknown {
  return parseManifestFile(new TextEncoder().encode(text), 'limits.yaml').data;
}

const HEAD = 'namespace: default\n';

describe('a limits file', () => {
  test('a limits file can be YAML with blocks, flows, quotes, comments, anchors and aliases', () => {
    const text = `# All limits.
namespace: "default"
resources:
  gpt-4: &usual
    limits: # for all entities
      - rpm:60/min
      - 'slots:2/concurrent'
  gpt-5: *usual
entities:
  "1": {}
  null-like: {name: "null", metadata: {n: 1.5, big: 9007199254740991, list: [true, null, ~, no]}}
  empty:
`;
    expect(parse(text)).toEqual({
      namespace: 'default',
      resources: {
        'gpt-4': { limits: ['rpm:60/min', 'slots:2/concurrent'] },
        'gpt-5': { limits: ['rpm:60/min', 'slots:2/concurrent'] },
      },
      entities: {
        1: {},
        'null-like': { name: 'null', metadata: { n: 1.5, big: 9007199254740991, list: [true, null, null, 'no'] } },
        empty: null,
      },
    });
  });

  test('a limits file can be JSON', () => {
    const data = { namespace: 'default', entities: { a: { metadata: { '\u2028': 'é' } } } };
    expect(parse(JSON.stringify(data, null, 2))).toEqual(data);
    expect(parse(`\u{feff}${JSON.stringify(data)}\r\n`)).toEqual(data);
  });

  test('a printed limits file reads back as the same data, for any names and texts', () => {
    const text = fc.string({ unit: 'binary', maxLength: 9 });
    const half = fc.constantFrom(
      '\u{d800}',
      'a\u{dfff}b',
      '\u{85}',
      '\u{7f}\0',
      ' x ',
      '- a',
      '# a',
      'a: b',
      '"',
      '\\u0041',
    );
    const odd = fc.oneof(text, half);
    const withText = fc.tuple(manifestData, odd, odd, fc.double()).map(([data, name, key, number]) => ({
      ...data,
      entities: {
        ...data.entities,
        odd: { name, metadata: { [key]: name, number: Number.isFinite(number) ? number : 0 } },
      },
    }));
    fc.assert(
      fc.property(withText, (data) => {
        const manifest = readManifest(data);
        expect(readManifest(parse(printManifest(data)))).toEqual(manifest);
      }),
      { numRuns: 300 },
    );
  });

  test('a limits file is printed in the style of the documentation', () => {
    const data = {
      namespace: 'default',
      system: { onUnavailable: 'block', limits: ['rpm:100/min'] },
      entities: { 'user-1': { parent: 'proj-1', default: { limits: ['rpm:60/min', 'slots:2/concurrent'] } }, 1: {} },
    } as const;
    expect(printManifest(data)).toBe(`namespace: default
system:
  onUnavailable: block
  limits: ["rpm:100/min"]
entities:
  "1": {}
  user-1:
    parent: proj-1
    default:
      limits: ["rpm:60/min", "slots:2/concurrent"]
`);
  });
});

describe('mistakes in a limits file', () => {
  test.each<[string, string, string]>([
    ['an empty file', '', 'limits.yaml:1:1: expected an object, got null'],
    ['a text', 'hello', 'limits.yaml:1:1: expected an object, got "hello"'],
    [
      'no namespace',
      'system: {limits: ["a:1/min"]}',
      'limits.yaml:1:1: namespace: expected a namespace name: a letter or digit, then up to 63 letters, digits, "_", "." or "-", got undefined',
    ],
    [
      'a limit that cannot be read',
      `${HEAD}entities:\n  user-1:\n    default:\n      limits: ["rpm:60/min", "rpm"]\n`,
      'limits.yaml:5:30: entities.user-1.default.limits[1]: expected a limit such as',
    ],
    [
      'a name that is misspelt',
      `${HEAD}resources:\n  gpt-4:\n    limit: ["rpm:1/min"]\n`,
      'limits.yaml:4:5: resources.gpt-4.limit: expected one of the fields limits (did you mean limits?), got "limit"',
    ],
    [
      'a block that is wrong, at its name',
      `${HEAD}system:\n  - a\n`,
      'limits.yaml:2:1: system: expected an object, got ["a"]',
    ],
    [
      'nothing where something is needed',
      `${HEAD}entities:\n  a:\n    default:\n`,
      'limits.yaml:4:13: entities.a.default: expected an object, got null',
    ],
    [
      'a name that is a number',
      `${HEAD}entities:\n  1: {}\n`,
      'limits.yaml:3:3: entities: expected names that are text (in quotes, if need be), got 1',
    ],
    [
      'a name that is a truth',
      `${HEAD}entities: {true: {}}\n`,
      'limits.yaml:2:12: entities: expected names that are text (in quotes, if need be), got true',
    ],
    [
      'a name that is nothing',
      `${HEAD}entities: {null: {}}\n`,
      'limits.yaml:2:12: entities: expected names that are text (in quotes, if need be), got null',
    ],
    [
      'a name that is a list',
      `${HEAD}? [a]\n: b\n`,
      'limits.yaml:2:3: expected names that are text (in quotes, if need be), got something else',
    ],
    [
      'a name twice',
      `${HEAD}entities:\n  a: {}\n  b: {}\n  a: {}\n`,
      'limits.yaml:5:3: entities: expected each name once, got "a" again',
    ],
    ['several documents', `${HEAD}---\n${HEAD}`, 'limits.yaml:2:1: expected one document, got another one here'],
    ['a quote that does not end', `${HEAD}system: "x\n`, 'limits.yaml:3:1: not valid YAML: Missing closing "quote'],
    [
      'a tab for a space',
      `${HEAD}entities:\n\ta: {}\n`,
      'limits.yaml:3:1: not valid YAML: Tabs are not allowed as indentation',
    ],
    [
      'a tag that is unknown',
      `${HEAD}system: !js/function x\n`,
      'limits.yaml:2:9: not valid YAML: Unresolved tag: !js/function',
    ],
    [
      'a merge, which is not YAML 1.2',
      `${HEAD}x: &x {}\nsystem:\n  <<: *x\n`,
      'limits.yaml:2:1: x: expected one of the fields namespace, system, resources, entities, got "x" (and 1 more problem)',
    ],
    [
      'an alias to nothing',
      `${HEAD}system: *missing\n`,
      'limits.yaml:2:9: system: expected an anchor that is defined above, got *missing',
    ],
    [
      'an alias to what it is in',
      `${HEAD}entities: &a\n  b: {metadata: *a}\n`,
      'limits.yaml:3:17: entities.b.metadata: expected an end, got *a inside of &a',
    ],
    [
      'a number that loses digits',
      `${HEAD}entities: {a: {metadata: {n: 12345678901234567890}}}`,
      'limits.yaml:2:30: entities.a.metadata.n: expected a number of at most 15 digits (or text in quotes), got 12345678901234567890',
    ],
    [
      'a number that is none',
      `${HEAD}entities: {a: {metadata: {n: .nan}}}`,
      'limits.yaml:2:30: entities.a.metadata.n: expected plain data that JSON can hold, got NaN',
    ],
    ['a date of YAML 1.1', `%YAML 1.1\n---\n${HEAD}entities: {a: {name: 2001-01-01}, yes: {}}`, 'ok'],
    [
      'a mistake inside of an alias, at the alias',
      `${HEAD}entities:\n  a: {metadata: &x {limits: [7]}}\n  u: {default: *x}\n`,
      'limits.yaml:4:16: entities.u.default.limits[0]: expected a limit such as',
    ],
    [
      'how many more there are',
      `${HEAD}a: 1\nb: 2\nc: 3\n`,
      'limits.yaml:2:1: a: expected one of the fields namespace, system, resources, entities, got "a" (and 2 more problems)',
    ],
  ])('%s', (_, text, message) => {
    let told = 'ok';
    try {
      parse(text);
    } catch (error) {
      expect(error).toMatchObject({ code: 'input.invalid', name: 'ManifestFileError', file: 'limits.yaml' });
      told = (error as Error).message;
    }
    expect(told.split('\n')).toHaveLength(1);
    expect(told.slice(0, message.length)).toBe(message);
  });

  test('bytes that are not UTF-8 are refused', () => {
    const bytes = Uint8Array.from([...new TextEncoder().encode(HEAD), 0xff, 0xfe]);
    expect(() => parseManifestFile(bytes, 'limits.yaml')).toThrow(
      'limits.yaml: expected text in UTF-8, got other bytes',
    );
  });

  test.each([
    ['lists', `${HEAD}entities: ${'['.repeat(100_000)}`],
    ['lists that end', `${HEAD}entities: ${'['.repeat(20_000)}${']'.repeat(20_000)}`],
    ['objects', `${HEAD}entities: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`],
    ['lists in lines', `${HEAD}entities:\n${'- '.repeat(20_000)}a`],
  ])('endless nesting is refused: %s', (_, text) => {
    expect(() => parse(text)).toThrow(/^limits\.yaml(?::\d+:\d+)?: /);
  });

  test('aliases that repeat billions of nodes are refused', () => {
    const lines = Array.from({ length: 20 }, (_, at) => `  l${at + 1}: &l${at + 1} [${`*l${at}, `.repeat(10)}]`);
    const text = `${HEAD}entities:\n  l0: &l0 [lol]\n${lines.join('\n')}\n`;
    expect(() => parse(text)).toThrow('expected aliases for at most 100000 values');
  });

  test.each([
    ['lists', '[', ']', 1],
    ['lists of single pairs', '[p: ', ']', 2],
    ['objects', '{p: ', '}', 1],
  ])('%s of 100 levels are read, and read again as printed; one more level is refused', (_, open, close, levels) => {
    const nested = (total: number): string => {
      // The file, its entities, the entity and its metadata are four levels.
      const count = (total - 4) / levels;
      return `${HEAD}entities: {a: {metadata: {x: ${open.repeat(count)}1${close.repeat(count)}}}}\n`;
    };
    const data = parse(nested(100)) as Parameters<typeof printManifest>[0];
    expect(parse(printManifest(data))).toEqual(data);
    expect(() => parse(nested(100 + levels))).toThrow('expected at most 100 levels of nesting, got more');
  });

  test('an error of the store gets its place in the file', () => {
    const file = parseManifestFile(new TextEncoder().encode(`${HEAD}entities:\n  a: {parent: b}\n`), 'limits.yaml');
    const explained = file.explain(new ValidationError('entities.a.parent', 'somewhere', 'b', 2));
    expect(explained).toMatchObject({
      message: 'limits.yaml:3:15: entities.a.parent: expected somewhere, got "b" (and 2 more problems)',
      field: 'entities.a.parent',
      line: 3,
      column: 15,
    });
    const elsewhere = file.explain(new ValidationError('entities.c', 'there', 'x'));
    expect(elsewhere).toMatchObject({ message: 'limits.yaml: entities.c: expected there, got "x"', line: null });
    const other = new Error('other');
    expect(file.explain(other)).toBe(other);
  });

  test('a file is refused if --namespace names another namespace', () => {
    const file = parseManifestFile(new TextEncoder().encode(HEAD), 'limits.yaml');
    expect([file.namespaceFor(undefined), file.namespaceFor('default')]).toEqual(['default', 'default']);
    expect(() => file.namespaceFor('acme')).toThrow(
      'limits.yaml:1:12: namespace: expected acme, which --namespace says, got "default"',
    );
  });
});
