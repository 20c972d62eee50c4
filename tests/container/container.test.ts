import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { startEngine } from '../../src/testing/dynamodb/index.js';
import { hashSecret, parseTokens } from '../../src/server/access-token.js';

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
});
