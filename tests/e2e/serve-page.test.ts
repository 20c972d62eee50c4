import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSession, type Step } from '../support/cli/page-session.js';
import { CLI, plainEnvironment } from '../support/cli/run-cli.js';

const STEPS = readSession('docs/guide/serve.md');
const SECRET = 'hg_8J0x...';
const run = promisify(execFile);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-serve-page-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A line of the page as `sh` runs it: `headgate` is the built program, and what the page shortens has its value. */
function typed({ line }: Step, values: readonly (readonly [shortened: string, value: string])[]): string {
  const whole = values.reduce((text, [shortened, value]) => text.replaceAll(shortened, value), line);
  return whole.replace(/^headgate /, `'${process.execPath}' '${CLI}' `);
}

/** A pattern of what the page shows: `...` stands for any text, and the secret and the port may differ. */
function shownAs(output: string): RegExp {
  const quoted = output
    .trimEnd()
    .replace(SECRET, 'hg_...')
    .replaceAll(/[\\^$*+?.()[\]{}|]/g, String.raw`\$&`);
  return new RegExp(`^${quoted.replaceAll(String.raw`\.\.\.`, '[^]*').replaceAll('8700', String.raw`\d+`)}$`);
}

test.skipIf(process.platform === 'win32')(
  'the commands of docs/guide/serve.md work as printed, one after another',
  async () => {
    const [store, set, create, secret, serve, ask, commit, ...further] = STEPS as [
      Step,
      Step,
      Step,
      Step,
      Step,
      Step,
      Step,
    ];
    expect(further).toEqual([]);
    expect([store.line, secret.line].every((line) => line.startsWith('export '))).toBe(true);
    const env = {
      ...plainEnvironment(),
      HEADGATE_URL: store.line.split('=')[1],
      HEADGATE_LEASE_SECRET: 'a secret of the test',
    };
    const type = async (line: string): Promise<string> => {
      const { stdout, stderr } = await run('sh', ['-c', line], { cwd: folder, env });
      return (stdout + stderr).trimEnd();
    };

    expect(await type(typed(set, []))).toMatch(shownAs(set.output));
    const created = await type(typed(create, []));
    expect(created).toMatch(shownAs(create.output));
    const token = [SECRET, created.split('\n')[0] ?? ''] as const;

    const server = spawn('sh', ['-c', `exec ${typed(serve, [])} --port 0`], { cwd: folder, env });
    try {
      const printed: string[] = [];
      for await (const line of createInterface({ input: server.stdout })) {
        printed.push(line);
        if (line.startsWith('Try it')) break;
      }
      expect(printed.join('\n')).toMatch(shownAs(serve.output));
      const host = ['localhost:8700', /127\.0\.0\.1:\d+/.exec(printed.join('\n'))?.[0] ?? ''] as const;

      const granted = await type(typed(ask, [token, host]));
      expect(granted).toMatch(shownAs(ask.output));
      const { lease } = JSON.parse(granted) as { readonly lease: { readonly token: string } };
      const ended = await type(typed(commit, [token, host, ['hgl1...', lease.token]]));
      expect(ended).toMatch(shownAs(commit.output));
    } finally {
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
  },
);
