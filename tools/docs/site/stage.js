import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { convertPage } from './convert-page.js';
import { sitePath } from './site-path.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The folder that VitePress builds. It is made anew, so that a removed page leaves nothing behind. */
export const PAGES = fileURLToPath(new URL('../pages/', import.meta.url));

/** Copies the pages and the pictures of the project into `PAGES`. Returns their paths in the project. */
export function stagePages() {
  rmSync(PAGES, { recursive: true, force: true });
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const files = [...readdirSync(ROOT), ...docs.map((name) => `docs/${name.replaceAll('\\', '/')}`)];
  const staged = files.filter((file) => sitePath(file) !== null);
  for (const file of staged) {
    const target = join(PAGES, sitePath(file));
    mkdirSync(dirname(target), { recursive: true });
    if (file.endsWith('.png')) copyFileSync(join(ROOT, file), target);
    else
      writeFileSync(
        target,
        convertPage(file, readPage(file), (path) => existsSync(join(ROOT, path))),
      );
  }
  return staged;
}

export function readPage(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}
