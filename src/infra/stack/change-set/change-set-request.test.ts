import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildTemplate, type Template } from '../../template.js';
import { buildChangeSetRequest, parseParameters } from './change-set.js';
import type { Stack } from '../stack-tools.js';
import { chooseNames } from '../stack-name.js';

const TEMPLATE = buildTemplate();
const NAMES = Object.keys(TEMPLATE.Parameters);
const WANTED = { names: chooseNames({ env: 'pre' }), template: TEMPLATE, version: '2.0.0', given: {} };

const stack: Stack = {
  id: 'arn:x',
  name: 'headgate-pre',
  status: 'UPDATE_COMPLETE',
  reason: null,
  createdAt: null,
  updatedAt: null,
  parameters: { TableName: 'headgate-pre', LogRetentionDays: '7', Gone: 'x' },
  outputs: {},
  tags: { 'headgate:version': '1.0.0', 'headgate:env': 'pre', team: 'search' },
};

describe('the request for a change set', () => {
  test('the request for a missing stack creates it with the table of the environment and only default parameters', () => {
    expect(buildChangeSetRequest(WANTED, null, 'c1')).toMatchObject({
      stack: 'headgate-pre',
      name: 'c1',
      type: 'CREATE',
      parameters: [{ name: 'TableName', value: 'headgate-pre' }],
      tags: { 'headgate:version': '2.0.0', 'headgate:env': 'pre' },
    });
  });

  test('the request for an empty shell of a stack creates the stack', () => {
    const shell = { ...stack, status: 'REVIEW_IN_PROGRESS' };
    expect(buildChangeSetRequest(WANTED, shell, 'c1')).toEqual(buildChangeSetRequest(WANTED, null, 'c1'));
  });

  test('the request for an existing stack keeps its parameters and its foreign tags', () => {
    const given = { ArchiveDays: '30' };
    expect(buildChangeSetRequest({ ...WANTED, given }, stack, 'c1')).toMatchObject({
      type: 'UPDATE',
      parameters: [
        { name: 'TableName', previous: true },
        { name: 'LogRetentionDays', previous: true },
        { name: 'ArchiveDays', value: '30' },
      ],
      tags: { 'headgate:version': '2.0.0', 'headgate:env': 'pre', team: 'search' },
    });
  });

  test('the request has the template without extra blanks, within the size limit', () => {
    const { template } = buildChangeSetRequest(WANTED, null, 'c1');
    expect(JSON.parse(template)).toEqual(TEMPLATE);
    expect(Buffer.byteLength(template)).toBeLessThanOrEqual(51_200);
  });

  test('a template that is too large is refused in one sentence', () => {
    const Metadata = { Text: 'é'.repeat(30_000) };
    const large: Template = { ...TEMPLATE, Metadata };
    const build = (): unknown => buildChangeSetRequest({ ...WANTED, template: large }, null, 'c1');
    expect(build).toThrow(/^The template has \d+ bytes, CloudFormation takes 51200 without a bucket$/);
  });
});

describe('parameters of a change set', () => {
  test('the request has the given parameters, keeps the others that the stack has, and has none twice', () => {
    const some = fc.dictionary(fc.constantFrom(...NAMES), fc.string());
    fc.assert(
      fc.property(some, some, (given, has) => {
        const existing = { ...stack, parameters: { TableName: 'headgate-pre', ...has } };
        const { parameters } = buildChangeSetRequest({ ...WANTED, given }, existing, 'c1');
        const expected = NAMES.filter((name) => name in given || name in existing.parameters);
        expect(parameters.map(({ name }) => name)).toEqual(expected);
        for (const one of parameters) expect('value' in one ? one.value : null).toBe(given[one.name] ?? null);
      }),
    );
  });

  test('parameters of the command line are parsed as Name=Value', () => {
    const typed = ['ReconcilerSchedule=cron(0/5 * * * ? *)', 'AlarmEmail=', 'RolePrincipalArn=a=b'];
    expect(parseParameters(typed, TEMPLATE)).toEqual({
      ReconcilerSchedule: 'cron(0/5 * * * ? *)',
      AlarmEmail: '',
      RolePrincipalArn: 'a=b',
    });
  });

  test.each([
    ['Colour=red', /^Expected `--param` to be one of TableName, .*, got "Colour"$/],
    ['AlarmEmail', /^Expected `--param` to be Name=Value, got "AlarmEmail"$/],
    ['=x', /^Expected `--param` to be Name=Value, got "=x"$/],
    ['TableName=x', /^Expected `--param` to be a parameter other than the name of the table/],
    ['toString=x', /^Expected `--param` to be one of /],
  ])('the option --param %s is refused', (typed, says) => {
    expect(() => parseParameters([typed], TEMPLATE)).toThrow(says);
  });
});
