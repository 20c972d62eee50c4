import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proseOf, ROOT, userPages } from '../support/docs/code-blocks.js';

interface Stated {
  readonly name: string;
  readonly value: number;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1_000, minutes: 60_000, days: 86_400_000 };

/** The defaults that are numbers in the generated table of options. Several options may have one name. */
function defaultsOf(page: string): ReadonlyMap<string, ReadonlySet<number>> {
  const defaults = new Map<string, Set<number>>();
  for (const line of page.split('\n')) {
    const [name = '', , value = ''] = line.slice(2).split(/(?<!\\) \| /);
    const number = /^(?:.*, else )?([\d,]+)$/.exec(value)?.[1];
    if (!/^`[\w.]+`$/.test(name) || number === undefined) continue;
    const option = name.slice(1, -1);
    defaults.set(option, (defaults.get(option) ?? new Set()).add(readNumber(number)));
  }
  return defaults;
}

/** What a text says of an option: `leaseTtlMs` (60 s), `leaseTtlMs`, 60 s. */
function statedIn(text: string): readonly Stated[] {
  const found = text.matchAll(/`([\w.]+Ms)`(?: \(|, )(\d[\d,]*)(?: (ms|s|minutes|days)\b)?/g);
  return Array.from(found, ([, name = '', value = '', unit = '']) => ({
    name,
    value: readNumber(value) * (UNITS[unit] ?? Number.NaN),
  }));
}

function readNumber(text: string): number {
  return Number(text.replaceAll(',', ''));
}

const DEFAULTS = defaultsOf(readFileSync(join(ROOT, 'docs/reference/options.md'), 'utf8'));

test('a page that states the default of an option states that of the code', () => {
  const stated = userPages().flatMap((page) => statedIn(proseOf(page)).map((one) => ({ page, ...one })));
  expect(stated.length).toBeGreaterThan(12);
  expect(stated.filter(({ name, value }) => DEFAULTS.get(name)?.has(value) !== true)).toEqual([]);
});

test('a default that the code does not have is found', () => {
  expect(DEFAULTS.get('leaseTtlMs')).toEqual(new Set([60_000]));
  expect(statedIn('until `leaseTtlMs` (61 s) has passed; `idleMs`, 5 minutes')).toEqual([
    { name: 'leaseTtlMs', value: 61_000 },
    { name: 'idleMs', value: 300_000 },
  ]);
});
