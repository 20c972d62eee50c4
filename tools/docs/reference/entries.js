import { readFileSync } from 'node:fs';

/** The folder of the project. */
export const ROOT = new URL('../../../', import.meta.url);

/**
 * The entry points of the package: how an app imports each, and its source. Made from `exports` of package.json, so that
 * no entry can be left out.
 */
export function readEntries() {
  const { name, exports } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([path, { types }]) => ({
      specifier: name + path.slice(1),
      source: types.replace(/^\.\/dist\//, 'src/').replace(/\.d\.ts$/, '.ts'),
    }));
}
