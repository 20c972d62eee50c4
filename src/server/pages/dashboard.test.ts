import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { requestServer } from '../../../tests/support/server/request-server.js';
import { readDashboard } from './dashboard-files.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-dashboard-'));
  for (const name of ['main-AA.js', 'style-BB.css', 'icon-CC.svg', 'notes.txt'])
    writeFileSync(join(folder, name), name);
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the routes of the dashboard', () => {
  test('every page is one document that names the built files and forbids everything inline', async () => {
    const { send } = await requestServer({ dashboard: readDashboard(folder) });
    for (const route of ['GET /dashboard/', 'GET /dashboard/entity?id=a']) {
      const response = await send(route);
      expect(response.status).toBe(200);
      expect(response.headers.get('cache-control')).toBe('no-cache');
      const policy = response.headers.get('content-security-policy');
      expect(policy).toMatch(/default-src 'none'; script-src 'self'; style-src 'self'/);
      expect(policy).not.toContain('unsafe');
      const html = await response.text();
      expect(html).toContain('src="/dashboard/assets/main-AA.js"');
      expect(html).toContain('href="/dashboard/assets/style-BB.css"');
      expect(html).not.toMatch(/\sstyle=|\son\w+=|<script>/);
    }
  });

  test('a built file is kept by browsers for a year, and sent compressed to those that accept it', async () => {
    const { server } = await requestServer({ dashboard: readDashboard(folder) });
    const get = async (encoding: string): Promise<Response> =>
      server.fetch(
        new Request('http://headgate.test/dashboard/assets/main-AA.js', { headers: { 'accept-encoding': encoding } }),
      );
    const plain = await get('identity');
    expect(await plain.text()).toBe('main-AA.js');
    expect(plain.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect((await get('gzip, br')).headers.get('content-encoding')).toBe('gzip');
  });

  test('the root leads to the dashboard; a file that was not built is a problem of the status 404', async () => {
    const { send } = await requestServer({ dashboard: readDashboard(folder) });
    expect((await send('GET /')).headers.get('location')).toBe('/dashboard/');
    for (const name of ['notes.txt', 'none.js', '..%2Fpackage.json']) {
      expect((await send(`GET /dashboard/assets/${name}`)).status).toBe(404);
    }
  });

  test('a server without the built files has no such route', async () => {
    const { send } = await requestServer({ dashboard: readDashboard(join(folder, 'missing')) });
    expect((await send('GET /dashboard/')).status).toBe(404);
    expect((await send('GET /')).status).toBe(404);
  });
});
