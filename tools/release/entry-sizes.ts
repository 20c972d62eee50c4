import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { gzipSync } from 'node:zlib';

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

/** The bytes, compressed with gzip, of each entry of a package with all files that importing it loads. */
export function measureEntries(folder: string): Readonly<Record<string, number>> {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const sizes = Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'string' ? [] : [[entry, bytesOf(folder, target.default.slice(2))] as const],
  );
  return Object.fromEntries(sizes);
}

function bytesOf(folder: string, entry: string): number {
  const texts = loadedWith(entry, (path) => readFileSync(join(folder, path), 'utf8'));
  return gzipSync(texts.join('')).length;
}

/** The texts of a file and of its static imports, and theirs. */
export function loadedWith(entry: string, read: (path: string) => string): readonly string[] {
  const texts = new Map([[entry, read(entry)]]);
  for (const [path, text] of texts) {
    for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^'"();]*?["'](\.[^"']+)["']/gm)) {
      const found = posix.join(posix.dirname(path), specifier);
      if (!texts.has(found)) texts.set(found, read(found));
    }
  }
  return [...texts.values()];
}

export interface Budgets {
  /** Bytes of the tarball. */
  readonly package: number;
  /** Bytes of each entry, compressed with gzip, with what it loads. */
  readonly entries: Readonly<Record<string, number>>;
}

/** What is larger than its budget, or has none. */
export function overBudget(
  budgets: Budgets,
  packed: number,
  entries: Readonly<Record<string, number>>,
): readonly string[] {
  const tarball = packed > budgets.package ? [`the package has ${packed} bytes, more than ${budgets.package}`] : [];
  const others = Object.entries(entries).flatMap(([entry, bytes]) => {
    const budget = budgets.entries[entry];
    if (budget === undefined) return [`${entry} has no budget in tools/release/budgets.json`];
    return bytes > budget ? [`${entry} has ${bytes} bytes, more than ${budget}`] : [];
  });
  return [...tarball, ...others];
}
