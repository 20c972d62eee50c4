import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkEntityId, checkResource } from '../../../core/identifiers.js';
import { nameOfText } from './name-of-text.js';

test.each([
  ['gpt-4o', 'gpt-4o'],
  ['my gpt', 'my%20gpt'],
  ['_own#1~x', '%5fown%231%7ex'],
  ['modèle', 'mod%c3%a8le'],
  ['100% mine', '100%%20mine'],
])('the resource of the model %j is %j', (text, name) => {
  expect(nameOfText('resource', text)).toBe(name);
});

test('a text that is too long for a name is replaced by its hash', () => {
  expect(nameOfText('resource', 'x'.repeat(129))).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(nameOfText('entityId', 'x'.repeat(129))).toBe('x'.repeat(129));
  expect(nameOfText('entityId', 'x'.repeat(257))).not.toBe(nameOfText('entityId', 'x'.repeat(258)));
});

test('every text but the empty one gives a name that is allowed', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'binary', maxLength: 300 }), (text) => {
      checkEntityId(nameOfText('entityId', text));
      checkResource(nameOfText('resource', text));
    }),
  );
  expect(() => checkEntityId(nameOfText('entityId', ''))).toThrow('entityId');
});
