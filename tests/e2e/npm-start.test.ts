import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What each build step of `npm start` makes. */
const MADE_BY: Readonly<Record<string, string>> = { 'build:cli': 'dist/cli', 'build:dashboard': 'dist/dashboard' };

let folder: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  // In the tree, so that the optional peers are found.
  folder = mkdtempSync(join(ROOT, '.tmp/start-'));
});

afterEach(() => {
  child?.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

test('npm start builds no more than the demo and its dashboard need, and they need no more than it builds', async () => {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  const { start } = (JSON.parse(text) as { readonly scripts: { readonly start: string } }).scripts;
  const steps = start.split(' && ');
  const [command = '', ...args] = steps.at(-1)?.split(' ') ?? [];
  expect(command).toBe('node');
  for (const step of steps.slice(0, -1)) {
    const made = MADE_BY[step.replace('npm run --silent ', '')] ?? `what ${step} makes`;
    cpSync(join(ROOT, made), join(folder, made), { recursive: true });
  }
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  const started = spawn(process.execPath, [...args, '--port', '0', '--json'], { cwd: folder });
  child = started;
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: started.stdout }).once('line', resolve);
    started.once('exit', () => reject(new Error('ended early')));
  });
  const { dashboard } = JSON.parse(line) as { readonly dashboard: string };
  const page = await (await fetch(dashboard)).text();
  expect(page).toContain('<title>Headgate</title>');
  const scripts = [...page.matchAll(/src="([^"]+\.js)"/g)].map(([, path]) => path ?? '');
  expect(scripts).not.toEqual([]);
  for (const path of scripts) expect((await fetch(new URL(path, dashboard))).status).toBe(200);
});
