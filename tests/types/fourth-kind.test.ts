import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const KINDS = `'rate' | 'concurrent' | 'unlimited'`;

let folder: string;

/** A copy of core, where a limit may have a fourth kind. */
beforeAll(() => {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  folder = mkdtempSync(join(ROOT, '.tmp/kinds-'));
  cpSync(join(ROOT, 'src/core'), join(folder, 'core'), {
    recursive: true,
    filter: (path) => !path.endsWith('.test.ts'),
  });
  const kinds = join(folder, 'core/limit-kind.ts');
  const text = readFileSync(kinds, 'utf8');
  expect(text.split(KINDS)).toHaveLength(2);
  writeFileSync(kinds, text.replace(KINDS, `${KINDS} | 'fourth'`));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['core'] }));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('core with a fourth kind of limit does not compile until each question about kinds has an answer for it', () => {
  const { stdout } = spawnSync(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const unanswered = stdout.split(/\r?\n/).flatMap((line) => {
    const found = /^core\/(.+)\((\d+),\d+\): error (TS\d+)/.exec(line);
    return found === null ? [] : [`${found[1]} ${nameAt(found[1]!, Number(found[2]))} ${found[3]}`];
  });
  expect(unanswered.toSorted()).toEqual([
    'bucket/decide.ts judge TS2366',
    'bucket/shard.ts shareOf TS2366',
    'limit-kind.ts hasBalance TS2366',
    'limit-kind.ts holdsSlots TS2366',
    'limit-kind.ts isConsumed TS2366',
    'limit-kind.ts refills TS2366',
    'limit.ts #printRule TS2366',
  ]);
});

/** The function that is declared on this line of a file of core. */
function nameAt(file: string, line: number): string {
  const text = readFileSync(join(folder, 'core', file), 'utf8').split('\n')[line - 1] ?? '';
  return /(#?\w+)\(/.exec(text)?.[1] ?? text;
}
