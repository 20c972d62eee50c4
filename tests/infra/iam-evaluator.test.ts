import { expect, test } from 'vitest';
import { isAllowed, type Statement } from './iam-evaluator.js';

const ANY: Statement = { Effect: 'Allow', Action: 'dynamodb:GetItem', Resource: 'arn:table' };
const request = (...leadingKeys: string[]) => ({ action: 'dynamodb:GetItem', resource: 'arn:table', leadingKeys });
const like = (...patterns: string[]) => ({ 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': patterns } });

test.each<[what: string, statements: readonly Statement[], keys: readonly string[], allowed: boolean]>([
  ['nothing', [], ['a/x'], false],
  ['another action', [{ ...ANY, Action: ['dynamodb:PutItem'] }], ['a/x'], false],
  ['another resource', [{ ...ANY, Resource: ['arn:table/index/GSI1'] }], ['a/x'], false],
  ['no condition', [ANY], ['a/x'], true],
  ['a key that matches', [{ ...ANY, Condition: like('a/*') }], ['a/x'], true],
  ['a key that does not', [{ ...ANY, Condition: like('a/*') }], ['a/x', 'b/x'], false],
  ['each key by another pattern', [{ ...ANY, Condition: like('a/*', 'b/?') }], ['a/x', 'b/x'], true],
  ['no key at all, which is true of all values', [{ ...ANY, Condition: like('a/*') }], [], true],
  [
    'no key at all, which Null refuses',
    [{ ...ANY, Condition: { ...like('a/*'), Null: { 'dynamodb:LeadingKeys': 'false' } } }],
    [],
    false,
  ],
  [
    'any of the keys',
    [{ ...ANY, Condition: { 'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': 'a/*' } } }],
    ['b/x', 'a/x'],
    true,
  ],
  [
    'a key that must not be',
    [{ ...ANY, Condition: { 'ForAllValues:StringNotLike': { 'dynamodb:LeadingKeys': '_/*' } } }],
    ['a/x', '_/x'],
    false,
  ],
  ['a denial beside', [ANY, { ...ANY, Effect: 'Deny', Action: 'dynamodb:*' }], ['a/x'], false],
  ['a tag', [{ ...ANY, Condition: like('${aws:PrincipalTag/ns}/*') }], ['a*/x'], true],
  ['a tag, whose wildcard is none', [{ ...ANY, Condition: like('${aws:PrincipalTag/ns}/*') }], ['ab/x'], false],
  ['a tag that is missing', [{ ...ANY, Condition: like('${aws:PrincipalTag/none}*') }], ['a/x'], false],
  ['a tag that equals', [{ ...ANY, Condition: { StringEquals: { 'aws:PrincipalTag/ns': 'a*' } } }], ['a/x'], true],
  ['a tag that does not', [{ ...ANY, Condition: { StringEquals: { 'aws:PrincipalTag/ns': 'a' } } }], ['a/x'], false],
])('%s', (_, statements, keys, allowed) => {
  expect(isAllowed({ Statement: statements }, request(...keys), { ns: 'a*' })).toBe(allowed);
});
