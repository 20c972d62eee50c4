import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** The path of the dashboard. Its pages are below it. */
export const DASHBOARD_PATH = '/dashboard';

/** One built file of the dashboard. */
export interface DashboardFile {
  readonly contentType: string;
  readonly body: ArrayBuffer;
  readonly gzipped: ArrayBuffer;
}

/** The built dashboard, by file name. Each name has a hash of its content. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>;

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Reads the dashboard of this package. null: it was not built, or the package was bundled into another program. */
export function readDashboard(folder: string | null = findFolder()): DashboardFiles | null {
  if (folder === null || !existsSync(folder)) return null;
  const files = new Map<string, DashboardFile>();
  for (const name of readdirSync(folder)) {
    const contentType = TYPES[extname(name)];
    if (contentType === undefined) continue;
    const body = readFileSync(join(folder, name));
    files.set(name, { contentType, body: copyOf(body), gzipped: copyOf(gzipSync(body, { level: 9 })) });
  }
  return files.size === 0 ? null : files;
}

/** The source and each bundle are at different depths of the package. */
function findFolder(): string | null {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) return null;
    folder = parent;
  }
  const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly name?: unknown };
  return name === 'headgate' ? join(folder, 'dist', 'dashboard') : null;
}

/** A buffer of Node may be a part of a larger one. */
function copyOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
