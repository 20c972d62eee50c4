import { expect, test } from 'vitest';
import { isAllowed, type Statement } from './iam-evaluator.js';

const ANY: Statement = { Effect: 'Allow', Action: 'dynamodb:GetItem', Resource: 'arn:table' };
const request = (...leadingKeys: string[]) => ({ action: 'dynamodb:GetItem', resource: 'arn:table', leadingKeys });
const like = (...patterns: string[]) => ({ 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': patterns } });

test.each<[what: string, statements: readonly Statement[], keys: readonly string[], allowed: boolean]>([
  ['no statement', [], ['a/x'], false],
  ['a statement for another action', [{ ...ANY, Action: ['dynamodb:PutItem'] }], ['a/x'], false],
  ['a statement for another resource', [{ ...ANY, Resource: ['arn:table/index/GSI1'] }], ['a/x'], false],
  ['a statement without a condition', [ANY], ['a/x'], true],
  ['a pattern that the only key matches', [{ ...ANY, Condition: like('a/*') }], ['a/x'], true],
  ['a pattern that one of two keys does not match', [{ ...ANY, Condition: like('a/*') }], ['a/x', 'b/x'], false],
  ['two patterns, each matched by another key', [{ ...ANY, Condition: like('a/*', 'b/?') }], ['a/x', 'b/x'], true],
  ['ForAllValues and a request without keys', [{ ...ANY, Condition: like('a/*') }], [], true],
  [
    'ForAllValues, Null and a request without keys',
    [{ ...ANY, Condition: { ...like('a/*'), Null: { 'dynamodb:LeadingKeys': 'false' } } }],
    [],
    false,
  ],
  [
    'ForAnyValue that one key matches',
    [{ ...ANY, Condition: { 'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': 'a/*' } } }],
    ['b/x', 'a/x'],
    true,
  ],
  [
    'StringNotLike that one key matches',
    [{ ...ANY, Condition: { 'ForAllValues:StringNotLike': { 'dynamodb:LeadingKeys': '_/*' } } }],
    ['a/x', '_/x'],
    false,
  ],
  ['an Allow and a Deny', [ANY, { ...ANY, Effect: 'Deny', Action: 'dynamodb:*' }], ['a/x'], false],
  ['the tag of the caller as a pattern', [{ ...ANY, Condition: like('${aws:PrincipalTag/ns}/*') }], ['a*/x'], true],
  [
    'a tag whose value contains a wildcard character',
    [{ ...ANY, Condition: like('${aws:PrincipalTag/ns}/*') }],
    ['ab/x'],
    false,
  ],
  ['a tag that the caller does not have', [{ ...ANY, Condition: like('${aws:PrincipalTag/none}*') }], ['a/x'], false],
  [
    'StringEquals with the tag of the caller',
    [{ ...ANY, Condition: { StringEquals: { 'aws:PrincipalTag/ns': 'a*' } } }],
    ['a/x'],
    true,
  ],
  [
    'StringEquals with another tag',
    [{ ...ANY, Condition: { StringEquals: { 'aws:PrincipalTag/ns': 'a' } } }],
    ['a/x'],
    false,
  ],
])('the policy is evaluated as IAM does: %s', (_, statements, keys, allowed) => {
  expect(isAllowed({ Statement: statements }, request(...keys), { ns: 'a*' })).toBe(allowed);
});
