import { describe, expect, test } from 'vitest';
import {
  type AccessToken,
  AccessTokens,
  coversEntity,
  coversNamespace,
  createSecret,
  hashSecret,
  parseTokens,
} from './access-token.js';

function tokenOf(secret: string, change: Partial<AccessToken> = {}): AccessToken {
  return { name: 'web', role: 'app', namespace: 'default', sha256: hashSecret(secret), ...change };
}

describe('a token', () => {
  test('is found by its secret, and no other secret finds it', () => {
    const [one, other] = [createSecret(), createSecret()];
    const tokens = new AccessTokens([tokenOf(one), tokenOf(other, { name: 'batch' })]);
    expect(tokens.find(one)?.name).toBe('web');
    expect(tokens.find(other)?.name).toBe('batch');
    for (const wrong of ['', one.slice(1), `${one}x`, createSecret(), hashSecret(one)]) {
      expect(tokens.find(wrong)).toBeNull();
    }
  });

  test('covers its own namespace only, unless it is for every namespace', () => {
    expect(coversNamespace(tokenOf('s'), 'default')).toBe(true);
    expect(coversNamespace(tokenOf('s'), 'acme')).toBe(false);
    expect(coversNamespace(tokenOf('s', { namespace: '*' }), 'acme')).toBe(true);
  });

  test('covers the entities that begin with its prefix', () => {
    const token = tokenOf('s', { entityPrefix: 'acme/' });
    expect(coversEntity(token, 'acme/user-1')).toBe(true);
    expect(coversEntity(token, 'acme')).toBe(false);
    expect(coversEntity(tokenOf('s'), 'anyone')).toBe(true);
  });
});

describe('the list of tokens', () => {
  test('is read as it was written', () => {
    const list = [
      tokenOf('a', { entityPrefix: 'acme/', ownLimits: true }),
      tokenOf('b', { name: 'ops', role: 'admin', namespace: '*' }),
    ];
    expect(parseTokens(JSON.stringify(list), 'tokens')).toEqual(list);
  });

  test.each([
    ['not JSON', 'x', 'tokens'],
    ['no list', '{}', 'tokens'],
    ['a role that does not exist', JSON.stringify([{ ...tokenOf('a'), role: 'root' }]), 'tokens[0].role'],
    ['a secret instead of its hash', JSON.stringify([{ ...tokenOf('a'), sha256: 'hg_secret' }]), 'tokens[0].sha256'],
    ['an unknown field', JSON.stringify([{ ...tokenOf('a'), secret: 'x' }]), 'tokens[0].secret'],
    ['an admin with a prefix', JSON.stringify([tokenOf('a', { role: 'admin', entityPrefix: 'x' })]), 'entityPrefix'],
    ['an empty prefix, which would cover all', JSON.stringify([tokenOf('a', { entityPrefix: '' })]), 'entityPrefix'],
    ['own limits without a prefix', JSON.stringify([tokenOf('a', { ownLimits: true })]), 'ownLimits'],
    [
      'the hash of another token, whose role it would get',
      JSON.stringify([tokenOf('a'), tokenOf('a', { name: 'ops', role: 'admin' })]),
      'tokens[1].sha256',
    ],
    ['two tokens of one name', JSON.stringify([tokenOf('a'), tokenOf('b')]), 'tokens'],
  ])('with %s is refused, and the message names the field', (_, text, field) => {
    expect(() => parseTokens(text, 'tokens')).toThrow(field);
  });

  test.each([
    ['alone', 'hg_secret'],
    ['in a list', JSON.stringify(['hg_secret'])],
    ['as a hash', JSON.stringify([{ ...tokenOf('a'), sha256: 'hg_secret' }])],
    ['in a list that is cut off', '[{"name":"web","sha256":"hg_secret"'],
  ])('that has a secret %s is refused without printing it', (_, text) => {
    expect(() => parseTokens(text, 'tokens')).toThrow(/^(?!.*(?:hg_secret|Symbol)).*tokens/);
  });
});
