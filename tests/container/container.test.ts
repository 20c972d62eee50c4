import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { startEngine } from '../../src/testing/dynamodb/index.js';
import { hashSecret, parseTokens } from '../../src/server/access/access-token.js';
import { startServe } from '../support/server/serve-process.js';

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const dockerfile = readFileSync(root('Dockerfile'), 'utf8');
const compose = parse(readFileSync(root('compose.yaml'), 'utf8'), { merge: true }) as {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly read_only?: boolean;
        readonly entrypoint?: readonly string[];
        readonly command?: readonly string[];
        readonly environment?: Readonly<Record<string, string>>;
        readonly ports?: readonly string[];
      }
    >
  >;
};

// There is no container runtime here, so the tests check what the files say and run their commands without one.
describe('the container', () => {
  test('the last stage runs as another user than root, has a health check, and starts the server', () => {
    const last = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
    expect(last).toMatch(/^USER node$/m);
    expect(last).toMatch(/^HEALTHCHECK /m);
    expect(last).toContain('ENTRYPOINT ["headgate", "serve", "--host", "0.0.0.0", "--port", "8700"]');
    expect(last.indexOf('USER node')).toBeLessThan(last.indexOf('ENTRYPOINT'));
  });

  test('every service has a read-only root file system, and the port is open on this machine only', () => {
    expect(Object.values(compose.services).every(({ read_only: readOnly }) => readOnly === true)).toBe(true);
    expect(compose.services['headgate']?.ports).toEqual(['127.0.0.1:8700:8700']);
  });

  test('the token of compose.yaml is the one that its comment names', () => {
    const [token] = parseTokens(compose.services['headgate']?.environment?.['HEADGATE_TOKENS'] ?? '', 'compose.yaml');
    expect(token?.sha256).toBe(hashSecret('hg_development-only'));
  });

  test('the command of the table service creates a table that the server can open', async () => {
    const engine = await startEngine('dynoxide');
    try {
      const [program, flag, script = ''] = compose.services['table']?.entrypoint ?? [];
      expect([program, flag]).toEqual(['node', '-e']);
      const here =
        script
          .replace('/usr/local/lib/node_modules/headgate/', root(''))
          .replace('http://dynamodb:8000', engine.endpoint)
          // Node 20 has no `require` of an ES module.
          .replace(/^require\(([^)]*)\)\s*\.createTable/, 'import($1).then((m) => m.createTable') + ')';
      const env = { ...process.env, ...compose.services['table']?.environment };
      await promisify(execFile)(process.execPath, [flag ?? '', here], { env });
      const store = compose.services['headgate']?.command?.[1]?.replace('http://dynamodb:8000', engine.endpoint) ?? '';
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [root('dist/cli/main.js'), 'check', '--store', store, '--json'],
        { env },
      );
      expect(JSON.parse(stdout)).toMatchObject({ ok: true });
    } finally {
      await engine.stop();
    }
  });

  test('the health check succeeds while the server runs, and fails when none does', async () => {
    const [, command = '[]'] = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(dockerfile) ?? [];
    const [program, ...args] = JSON.parse(command) as string[];
    expect(program).toBe('node');
    const checkAt = async (port: string): Promise<unknown> => {
      const here = args.map((arg) => arg.replace(':8700/', `:${port}/`));
      return promisify(execFile)(process.execPath, here).then(
        () => 0,
        (error: { readonly code?: unknown }) => error.code,
      );
    };
    const server = await startServe(['--store', 'memory:'], {});
    expect(await checkAt(new URL(server.url).port)).toBe(0);
    server.child.kill('SIGTERM');
    expect(await server.ended).toBe(0);
    expect(await checkAt(await freePort())).toBe(1);
  });

  test('the server needs no writable folder but that of its data', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-container-'));
    const [data, readOnly] = [join(folder, 'data'), readOnlyFolder(folder)];
    mkdirSync(data);
    expect(() => writeFileSync(join(readOnly, 'probe'), '')).toThrow();
    const env = {
      HOME: readOnly,
      TMPDIR: readOnly,
      NODE_ENV: 'production',
      HEADGATE_LEASE_SECRET: 'a-secret-of-the-tests',
    };
    const args = ['--store', `file:${join(data, 'limits.db')}`, '--limit', 'rpm:2/min'];
    const ask = { method: 'POST', body: JSON.stringify({ entityId: 'a', resource: 'b', consume: { rpm: 1 } }) };
    try {
      // The second server reads what the first one has stored.
      for (const left of [1, 0]) {
        const server = await startServe(args, env, readOnly);
        const answer = (await (await fetch(`${server.url}/v1/acquire`, ask)).json()) as object;
        expect(answer).toMatchObject({ granted: true, statuses: [{ limit: { name: 'rpm' }, available: left }] });
        server.child.kill('SIGTERM');
        expect(await server.ended).toBe(0);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

/** Root may write everywhere but into the file system of the kernel. */
function readOnlyFolder(parent: string): string {
  if (process.getuid?.() === 0) return '/proc';
  const folder = join(parent, 'read-only');
  mkdirSync(folder);
  chmodSync(folder, 0o555);
  return folder;
}
