import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder that `npm run docs` writes. */
const SITE = fileURLToPath(new URL('../../tools/docs/dist/', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

export const isBuilt = existsSync(join(SITE, 'index.html'));

/** The addresses of all pages, without the host. */
export function sitePages(): readonly string[] {
  const files = readdirSync(SITE, { recursive: true, encoding: 'utf8' });
  const pages = files.filter((name) => name.endsWith('.html') && name !== '404.html');
  return pages.map((name) => `/${name.replaceAll('\\', '/')}`).toSorted();
}

export interface ServedSite extends AsyncDisposable {
  readonly url: string;
}

/** Serves the built site on this machine. */
export async function serveSite(): Promise<ServedSite> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const file = join(SITE, decodeURIComponent(pathname.endsWith('/') ? `${pathname}index.html` : pathname));
    if (!file.startsWith(SITE) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
