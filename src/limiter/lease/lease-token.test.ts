import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Limit } from '../../core/limit.js';
import { buildLeaseToken, parseLeaseToken, type TokenContent } from './lease-token.js';

const SECRET = 'the current secret';
const CONTENT: TokenContent = {
  namespaceId: '0Namespace1',
  leaseId: '0QCON500Tlq',
  ttlMs: 60_000,
  levels: [
    {
      entityId: 'user-1|x',
      resource: 'gpt-4~Ab3_x~9Z',
      limits: [Limit.perMinute('tpm', 10_000, { burst: 50_000 }), Limit.concurrent('slots', 4), Limit.unlimited('usd')],
      version: { sequence: 7, openedAtMs: 0 },
      lasting: true,
      refunds: true,
      granted: [
        { name: 'tpm', milli: 500_000 },
        { name: 'usd', milli: 2n ** 60n },
      ],
      place: [{ shard: 3, taken: [{ name: 'tpm', milli: '500000' }] }],
      untaken: new Set(['slots']),
    },
    {
      entityId: 'team',
      resource: 'gpt-4',
      limits: [Limit.perDay('rpd', 5)],
      version: { sequence: 0, openedAtMs: 1_800_000_000_000 },
      lasting: false,
      refunds: false,
      granted: [],
      place: undefined,
    },
  ],
};
const TOKEN = buildLeaseToken(CONTENT, [SECRET]);
const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \u00e9';

/** The same content as plain data: limits as text. */
function plain(content: TokenContent): unknown {
  const levels = content.levels.map((level) => ({ ...level, limits: level.limits.map(String) }));
  return { ...content, levels };
}

describe('lease tokens', () => {
  test('a token says what was put into it, in characters that need no escaping in a URL', () => {
    expect(plain(parseLeaseToken(TOKEN, [SECRET]))).toEqual(plain(CONTENT));
    expect(TOKEN).toMatch(/^hgl1\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]{43}$/);
    expect(encodeURIComponent(TOKEN)).toBe(TOKEN);
  });

  test('a token of one level with two limits is shorter than 300 characters', () => {
    const [, level] = CONTENT.levels;
    const limits = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)];
    expect(buildLeaseToken({ ...CONTENT, levels: [{ ...level!, limits }] }, [SECRET]).length).toBeLessThan(300);
  });

  test('a token that is altered in any byte is refused, whatever the byte becomes', () => {
    for (let at = 0; at < TOKEN.length; at++) {
      for (const character of CHARACTERS) {
        if (character === TOKEN[at]) continue;
        const altered = TOKEN.slice(0, at) + character + TOKEN.slice(at + 1);
        expect(() => parseLeaseToken(altered, [SECRET])).toThrow(
          expect.objectContaining({ code: 'lease.token-invalid' }),
        );
      }
    }
  });

  test('a token with a byte removed or added at any place is refused', () => {
    for (let at = 0; at <= TOKEN.length; at++) {
      const shorter = TOKEN.slice(0, at) + TOKEN.slice(at + 1);
      const longer = `${TOKEN.slice(0, at)}A${TOKEN.slice(at)}`;
      for (const altered of [shorter, longer]) {
        if (altered === TOKEN) continue;
        expect(() => parseLeaseToken(altered, [SECRET])).toThrow(
          expect.objectContaining({ code: 'lease.token-invalid' }),
        );
      }
    }
  });

  test('any other text is refused with the code of a bad token, and the message does not show it', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `hgl1.${text}`),
        ),
        (text) => {
          let error: unknown;
          try {
            parseLeaseToken(text, [SECRET]);
          } catch (thrown) {
            error = thrown;
          }
          expect(error).toMatchObject({ code: 'lease.token-invalid', httpStatus: 400, exitCode: 3 });
          if (text.length > 12) expect(String(error)).not.toContain(text);
        },
      ),
    );
  });

  test('a token is accepted only with the secret that signed it, as the current or the previous one', () => {
    const secret = fc.string({ minLength: 16 });
    fc.assert(
      fc.property(secret, secret, secret, (signing, other, third) => {
        fc.pre(signing !== other && signing !== third);
        const token = buildLeaseToken(CONTENT, [signing, other]);
        for (const secrets of [[signing], [signing, other], [other, signing]]) {
          expect(parseLeaseToken(token, secrets).leaseId).toBe(CONTENT.leaseId);
        }
        expect(() => parseLeaseToken(token, [other, third])).toThrow(
          expect.objectContaining({ code: 'lease.token-invalid' }),
        );
      }),
    );
  });

  test('without a secret no token is made, and none is read', () => {
    expect(() => buildLeaseToken(CONTENT, [])).toThrow(/HEADGATE_LEASE_SECRET/);
    expect(() => parseLeaseToken(TOKEN, [])).toThrow(expect.objectContaining({ code: 'input.invalid' }));
  });
});
