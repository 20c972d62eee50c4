import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const KINDS = `'rate' | 'concurrent' | 'unlimited'`;

let folder: string;

/** A copy of the sources, where a limit may have a fourth kind. */
beforeAll(() => {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  folder = mkdtempSync(join(ROOT, '.tmp/kinds-'));
  cpSync(join(ROOT, 'src'), folder, {
    recursive: true,
    filter: (path) => !path.endsWith('.test.ts'),
  });
  const kinds = join(folder, 'core/limit-kind.ts');
  const text = readFileSync(kinds, 'utf8');
  expect(text.split(KINDS)).toHaveLength(2);
  writeFileSync(kinds, text.replace(KINDS, `${KINDS} | 'fourth'`));
  const include = ['core', ...['acquire', 'bucket', 'expressions', 'table'].map((part) => `backends/dynamodb/${part}`)];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include }));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('with a fourth kind of limit, core and the bucket code of DynamoDB do not compile until each question about kinds has an answer for it', () => {
  const { stdout } = spawnSync(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const unanswered = stdout.split(/\r?\n/).flatMap((line) => {
    const found = /^(.+)\((\d+),\d+\): error (TS\d+)/.exec(line);
    return found === null ? [] : [`${found[1]} ${nameAt(found[1]!, Number(found[2]))} ${found[3]}`];
  });
  expect(unanswered.toSorted()).toEqual([
    'backends/dynamodb/bucket/split.ts splitLimit TS2366',
    'backends/dynamodb/table/stored-period.ts encodePeriod TS2366',
    'backends/dynamodb/table/stored-period.ts limitOfKind TS2366',
    'core/bucket/decide.ts judge TS2366',
    'core/bucket/shard.ts shareOf TS2366',
    'core/limit-kind.ts hasBalance TS2366',
    'core/limit-kind.ts holdsSlots TS2366',
    'core/limit-kind.ts isConsumed TS2366',
    'core/limit-kind.ts refills TS2366',
    'core/limit.ts #printRule TS2366',
  ]);
});

/** The function whose declaration ends on this line of a file, or has its result type there. */
function nameAt(file: string, line: number): string {
  const lines = readFileSync(join(folder, file), 'utf8').split('\n').slice(0, line);
  const name = lines.findLast((text) => /^(?:export )?function |^  #?\w+\(/.test(text)) ?? '';
  return /(#?\w+)\(/.exec(name)?.[1] ?? name;
}
