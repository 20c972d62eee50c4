import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import { FUNCTIONS } from '../../src/infra/template/names.js';
import { type AnyTemplate, checkTemplate } from './cfn-checker.js';
import { intrinsicOf } from '../support/aws/cfn-intrinsics.js';

type Fields = Record<string, unknown>;
type Path = readonly string[];

/** CloudFormation's limit for a template in a request. A larger template would need an S3 bucket. */
const MAX_BYTES = 51_200;

const TEMPLATE = buildTemplate();

/** A changed copy of the template. */
function mutant(change: (template: Fields) => void): AnyTemplate {
  const copy = JSON.parse(JSON.stringify(TEMPLATE)) as Fields;
  change(copy);
  return copy as unknown as AnyTemplate;
}

function at(root: Fields, path: Path): Fields {
  return path.reduce((fields, name) => fields[name] as Fields, root);
}

function renamed(path: Path): AnyTemplate {
  return mutant((template) => {
    const parent = at(template, path.slice(0, -1));
    const name = path.at(-1) ?? '';
    parent[`${name}x`] = parent[name];
    delete parent[name];
  });
}

/** Names that the template chooses: entries of sections and of maps. A separate test covers references to them. */
function isOurOwn([section, , ...rest]: Path): boolean {
  if (section === undefined || section === 'Metadata') return true;
  if (rest.length === 0) return ['Parameters', 'Conditions', 'Resources', 'Outputs'].includes(section);
  return rest.at(-2) === 'Variables';
}

/** Every name in an object, at any depth. */
function namesIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [
    ...(Array.isArray(value) ? [] : [[...path, name]]),
    ...namesIn(part, [...path, name]),
  ]);
}

/** One path per property of a type of resource, whatever the resource and the place in a list. */
function kindOf([section, name = '', ...rest]: Path): string {
  const type = section === 'Resources' ? TEMPLATE.Resources[name]?.Type : '';
  return [section, type, ...rest.filter((part) => !/^\d+$/.test(part))].join('.');
}

const PROPERTIES = [
  ...new Map(
    namesIn(TEMPLATE)
      .filter((path) => path.length > 1 && !isOurOwn(path))
      .map((path) => [kindOf(path), path]),
  ).values(),
];

test('the template conforms to the specification of CloudFormation', () => {
  expect(checkTemplate(TEMPLATE as unknown as AnyTemplate)).toEqual([]);
});

test('the template fits into a request, so that no bucket is needed to deploy it', () => {
  expect(Buffer.byteLength(JSON.stringify(TEMPLATE))).toBeLessThan(MAX_BYTES);
});

describe('the checker', () => {
  test.each<[what: string, path: Path, value: unknown, finding: RegExp]>([
    [
      'a key schema of an index',
      ['Resources', 'Table', 'Properties', 'GlobalSecondaryIndexes', '0', 'KeySchema', '0'],
      { AttributName: 'GSI1PK', KeyType: 'HASH' },
      /KeySchema\[0\]: there is no AttributName/,
    ],
    [
      'the key schema of the table',
      ['Resources', 'Table', 'Properties', 'KeySchema', '1'],
      { AttributeName: 'SK', KeyTyp: 'RANGE' },
      /KeySchema\[1\]: there is no KeyTyp/,
    ],
    [
      'an alarm',
      ['Resources', 'StreamBehindAlarm', 'Properties', 'TreatMisingData'],
      'breaching',
      /StreamBehindAlarm: there is no TreatMisingData/,
    ],
    [
      'a metric of an alarm',
      ['Resources', 'SystemErrorsAlarm', 'Properties', 'Metrics', '1', 'MetricStat', 'Metric', 'Dimension'],
      [],
      /Metrics\[1\]\.MetricStat\.Metric: there is no Dimension/,
    ],
    ['a type', ['Resources', 'Table', 'Type'], 'AWS::DynamoDB::Tabel', /Tabel is no kind of resource/],
    ['a text for a number', ['Resources', 'StreamFunction', 'Properties', 'Timeout'], '60', /expected a whole number/],
    [
      'a value',
      ['Resources', 'Table', 'Properties', 'ContributorInsightsSpecification'],
      { Enabled: true, Mode: 'SOME_KEYS' },
      /expected one of ACCESSED_AND_THROTTLED_KEYS/,
    ],
    ['a reference', ['Resources', 'StreamRole', 'Properties', 'PermissionsBoundary'], { Ref: 'Tabel' }, /no Tabel/],
    [
      'an attribute',
      ['Outputs', 'StreamArn', 'Value'],
      { 'Fn::GetAtt': ['Table', 'StreamArnx'] },
      /no Table\.StreamArnx/,
    ],
    ['a substitution', ['Outputs', 'StreamArn', 'Value'], { 'Fn::Sub': 'x${Tabel.Arn}' }, /no Tabel\.Arn/],
    ['a condition', ['Resources', 'AcquireRole', 'Condition'], 'Never', /no condition Never/],
    [
      'a parameter of another type',
      ['Resources', 'StreamFunction', 'Properties', 'MemorySize'],
      { Ref: 'TableName' },
      /the parameter TableName is a String/,
    ],
    [
      'an operator of a policy',
      ['Resources', 'NamespaceFullPolicy', 'Properties', 'PolicyDocument', 'Statement', '0', 'Condition', 'Nul'],
      {},
      /there is no Nul/,
    ],
    ['a function', ['Outputs', 'StreamArn', 'Value'], { 'Fn::Get': 'Table' }, /Fn::Get is no function/],
  ])('the checker finds a mistake in %s', (_, path, value, finding) => {
    const wrong = mutant((template) => {
      at(template, path.slice(0, -1))[path.at(-1) ?? ''] = value;
    });
    expect(checkTemplate(wrong).join('\n')).toMatch(finding);
  });

  test('the checker finds every renamed property at any depth', () => {
    expect(PROPERTIES.length).toBeGreaterThan(150);
    const missed = PROPERTIES.filter((path) => checkTemplate(renamed(path)).length === 0);
    expect(missed.map((path) => path.join('.'))).toEqual([]);
  });

  test('the checker finds that a referenced name was renamed', () => {
    const referred = ['Table', 'ArchiveBucket', 'StreamLog', 'StreamRole', 'AlarmTopic', 'AcquirePolicy', 'Dashboard'];
    for (const name of referred) expect(checkTemplate(renamed(['Resources', name]))).not.toEqual([]);
    for (const name of Object.keys(TEMPLATE.Parameters)) {
      expect(checkTemplate(renamed(['Parameters', name]))).toContain(`${name}x: nothing uses it`);
    }
    for (const name of Object.keys(TEMPLATE.Conditions)) {
      expect(checkTemplate(renamed(['Conditions', name]))).toContain(`${name}x: nothing uses it`);
    }
  });

  test('the checker finds that a required property is missing', () => {
    for (const [name, property] of [
      ['Table', 'KeySchema'],
      ['StreamFunction', 'Code'],
      ['StreamSource', 'FunctionName'],
      ['StreamRole', 'AssumeRolePolicyDocument'],
    ] as const) {
      const wrong = mutant((template) => delete at(template, ['Resources', name, 'Properties'])[property]);
      expect(checkTemplate(wrong)).toContain(`${name}: it lacks ${property}`);
    }
  });
});

describe('the functions', () => {
  const properties = (name: string) => TEMPLATE.Resources[name]?.Properties as Fields;

  test('the functions fail before their code is uploaded, so that a batch stays in the stream', async () => {
    for (const name of Object.values(FUNCTIONS)) {
      const module = { exports: {} as { handler?: () => Promise<unknown> } };
      const { ZipFile } = properties(name)['Code'] as { readonly ZipFile: string };
      runInNewContext(ZipFile, { exports: module.exports, Error });
      await expect(module.exports.handler?.()).rejects.toThrow(
        'the code of this function was not uploaded yet: headgate upgrade',
      );
    }
  });

  test('the functions have the environment variables that their code reads', () => {
    const variables = (name: string) => (properties(name)['Environment'] as { Variables: Fields }).Variables;
    expect(variables(FUNCTIONS.stream)).toEqual({ HEADGATE_ARCHIVE_BUCKET: { Ref: 'ArchiveBucket' } });
    expect(variables(FUNCTIONS.reconciler)).toEqual({ HEADGATE_TABLE: { Ref: 'Table' } });
  });
});

test('every parameter has a default, and every alarm states what missing data means', () => {
  for (const parameter of Object.values(TEMPLATE.Parameters)) expect(parameter.Default).toBeDefined();
  const alarms = Object.values(TEMPLATE.Resources).filter(({ Type }) => Type === 'AWS::CloudWatch::Alarm');
  expect(alarms.map(({ Properties }) => Properties['TreatMissingData']).filter((x) => x === 'breaching')).toHaveLength(
    1,
  );
  expect(alarms.every(({ Properties }) => intrinsicOf((Properties['AlarmActions'] as unknown[])[0]) !== null)).toBe(
    true,
  );
});

test('resources with data are retained when the stack is deleted', () => {
  const kept = Object.entries(TEMPLATE.Resources).filter(([, { DeletionPolicy }]) => DeletionPolicy === 'Retain');
  expect(kept.map(([name]) => name)).toEqual(['Table', 'ArchiveBucket']);
});
