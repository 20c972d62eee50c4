import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { AppServer } from './app-server.js';
import type * as routes from './next-routes.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The routes of the app, by their path. */
const PATHS: Readonly<Record<keyof typeof routes, string>> = {
  users: 'users',
  addresses: 'addresses',
  failures: 'failures',
  several: 'several',
  items: 'items/[id]',
  streams: 'streams',
  late: 'late',
  thrown: 'thrown',
  blocked: 'blocked',
  allowed: 'allowed',
};

/** Limits everything below `/proxied`, before its route. */
const PROXY = `
import { NextResponse } from 'next/server';
import { Limit, RateLimiter } from 'headgate';
import { withRateLimit } from 'headgate/next';

export const proxy = withRateLimit(async () => NextResponse.next(), {
  limiter: new RateLimiter('memory:'),
  limits: [Limit.perDay('requests', 2)],
  key: () => 'client',
});
export const config = { matcher: '/proxied' };
`;

const LAYOUT = `
export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>;
}
`;

/** An app of Next.js in a folder of its own, beside the packages in `modules`. */
export interface NextApp {
  build(): Promise<void>;
  start(): Promise<AppServer>;
  /** Ends what still runs, and removes the folder. */
  remove(): void;
}

/** Writes the app. `modules`: a folder in which next, react and react-dom are installed. */
export async function writeNextApp(modules: string): Promise<NextApp> {
  const folder = mkdtempSync(join(modules, 'app-'));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  write('package.json', JSON.stringify({ name: 'app', private: true, type: 'module' }));
  write('next.config.mjs', `export default { turbopack: { root: ${JSON.stringify(modules)} } };\n`);
  write('app/layout.jsx', LAYOUT);
  write('app/proxied/route.js', `export const GET = async () => new Response('behind the proxy');\n`);
  write('proxy.js', PROXY);
  for (const [name, path] of Object.entries(PATHS)) {
    write(`app/api/${path}/route.js`, `export { ${name} as GET } from '@/next-routes.js';\n`);
  }
  write('jsconfig.json', JSON.stringify({ compilerOptions: { paths: { '@/*': ['./*'] } } }));
  // Without types, because Next.js installs TypeScript where it finds types.
  await build({ entryPoints: [join(ROOT, 'tests/support/http/next-routes.ts')], format: 'esm', outdir: folder });
  installHeadgate(join(folder, 'node_modules', 'headgate'));
  const started: ChildProcess[] = [];
  const run: RunNext = (...args) => {
    const child = spawnNext(modules, folder, args);
    started.push(child);
    return child;
  };
  return {
    build: () => buildApp(run),
    start: () => startApp(run),
    remove: () => {
      for (const child of started) child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The built package, as npm installs it. */
function installHeadgate(folder: string): void {
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
}

type RunNext = (...args: readonly string[]) => ChildProcess;

function spawnNext(modules: string, folder: string, args: readonly string[]): ChildProcess {
  const program = join(modules, 'node_modules', 'next', 'dist', 'bin', 'next');
  const { NODE_ENV: _, ...env } = process.env;
  return spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...env, NEXT_TELEMETRY_DISABLED: '1', CI: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function outputOf(child: ChildProcess): () => string {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += String(chunk)));
  return () => output;
}

async function buildApp(run: RunNext): Promise<void> {
  const child = run('build');
  const output = outputOf(child);
  const code = await new Promise((resolve) => child.once('exit', resolve));
  if (code !== 0) throw new Error(`next build failed (${String(code)}):\n${output()}`);
}

async function startApp(run: RunNext): Promise<AppServer> {
  const port = await freePort();
  const child = run('start', '--hostname', '127.0.0.1', '--port', String(port));
  const output = outputOf(child);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (child.exitCode !== null) throw new Error(`next start failed:\n${output()}`);
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  return { url, stop };
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
