import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildPages } from './pages.js';

/** Run from the folder of the project, by `npm run docs:reference`. */
const folder = join('docs', 'reference');
mkdirSync(folder, { recursive: true });
for (const { file, text } of buildPages()) writeFileSync(join(folder, file), text);
