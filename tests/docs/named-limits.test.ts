import { expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { proseOf, userPages } from '../support/docs/code-blocks.js';

const spans = userPages().flatMap((page) =>
  Array.from(proseOf(page).matchAll(/`([^`\n]+)`/g), ([, code = '']) => ({ page, code })),
);

/** The arguments of a call such as `Limit.perMinute('rpm', 60, { burst: 1 })`; null if they are not all literals. */
function readArguments(text: string): readonly unknown[] | null {
  const json = text
    .replaceAll(/(\d)_(?=\d)/g, '$1')
    .replaceAll("'", '"')
    .replaceAll(/(\w+):/g, '"$1":');
  try {
    return JSON.parse(`[${json}]`) as readonly unknown[];
  } catch {
    return null;
  }
}

test('every limit that the text of a page writes as a call is a valid limit', () => {
  const calls = spans.flatMap(({ page, code }) => {
    const [, method = '', text] = /^Limit\.(\w+)\((.*)\)$/.exec(code) ?? [];
    const args = text === undefined ? null : readArguments(text);
    return args === null ? [] : [{ where: `${page}: ${code}`, method, args }];
  });
  expect(calls.length).toBeGreaterThan(8);
  for (const { where, method, args } of calls) {
    const make = (): unknown =>
      (Limit as unknown as Record<string, (...values: unknown[]) => unknown>)[method]!(...args);
    expect(make, where).not.toThrow();
  }
});

test('every limit that the text of a page writes as text can be parsed', () => {
  const texts = spans.filter(({ code }) => /^[a-z]+:\d+\/(?:\d*[a-z]+)\S*$/.test(code));
  expect(texts.length).toBeGreaterThan(10);
  expect(texts.filter(({ code }) => !isLimit(code))).toEqual([]);
});

function isLimit(text: string): boolean {
  try {
    return String(Limit.parse(text)) !== '';
  } catch {
    return false;
  }
}
