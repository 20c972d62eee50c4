/*
 * Deletes the declarations that no entry point of the package reaches: two thirds of the files, which no program can import
 * and which made the package a tenth larger.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');
/** `from './a.js'`, `import './a.js'`, `import('./a.js')`. */
const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g;

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const reached = new Set();
for (const { types } of Object.values(exports)) if (types !== undefined) reach(join(ROOT, types));
for (const path of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
  const file = join(DIST, path);
  if (path.endsWith('.d.ts') && !reached.has(file)) rmSync(file);
}

function reach(file) {
  if (reached.has(file)) return;
  reached.add(file);
  for (const [, specifier] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
    reach(join(dirname(file), `${specifier}.d.ts`));
  }
}
