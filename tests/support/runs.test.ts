import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { MANY_CASES } from '../../vitest.config.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('test:chaos runs every property that npm test reduces with all its cases', () => {
  const files = ['src', 'tests'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  );
  const imports = /^import \{ runs(?:, runsAll)? \} from '.*\/support\/runs\.js';$/m;
  const using = files.filter(
    (path) => path.endsWith('.test.ts') && imports.test(readFileSync(join(ROOT, path), 'utf8')),
  );
  expect(using.toSorted()).toEqual(MANY_CASES.toSorted());
});
