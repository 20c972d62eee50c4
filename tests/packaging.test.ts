import { build } from 'esbuild';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

/** A project that has installed only the packed package. */
let consumer: string;
let tarballBytes: number;

beforeAll(() => {
  if (!existsSync(join(ROOT, 'dist/index.js')))
    throw new Error('There is nothing to pack: `npm run build` comes first');
  consumer = mkdtempSync(join(tmpdir(), 'headgate-consumer-'));
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }));
  const [packed] = JSON.parse(npm(ROOT, 'pack', '--json', '--ignore-scripts', '--pack-destination', consumer)) as [
    { filename: string; size: number },
  ];
  tarballBytes = packed.size;
  npm(consumer, 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', join(consumer, packed.filename));
  linkNodeTypes();
}, 60_000);

afterAll(() => rmSync(consumer, { recursive: true, force: true }));

describe('the tarball', () => {
  test('the tarball is built before it is packed, so that a fresh clone packs a complete package', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    expect(scripts['prepack']).toBe('npm run build');
  });

  test('the tarball contains the build, the pages for users, the licences and the manifest, and nothing else', () => {
    const strangers = packedFiles().filter(
      (path) =>
        !/^(?:dist\/.+\.(?:js|d\.ts)|dist\/lambda\/.+\.cjs|dist\/dashboard\/[\w-]+\.(?:css|svg)|grafana\/headgate\.json|docs\/(?:(?:adr|backends|guide|operate|reference)\/)?[\w-]+\.md|LICENSE|THIRD-PARTY-LICENSES\.txt|(?:README|CHANGELOG|CONTRIBUTING|SECURITY|SKILL)\.md|llms\.txt|package\.json)$/.test(
          path,
        ),
    );
    expect(strangers).toEqual([]);
    expect(packedFiles().filter((path) => path.includes('.test.'))).toEqual([]);
    expect(packedFiles().filter((path) => path.startsWith('dist/dashboard/'))).toHaveLength(3);
  });

  test('the tarball contains no path of the machine that built it', () => {
    // Pages may show paths and addresses as examples.
    const isBuilt = (path: string): boolean => !/\.(?:md|txt)$/.test(path);
    const machine = [ROOT, 'file://', '/home/', '/Users/'];
    const found = packedFiles()
      .filter(isBuilt)
      .filter((path) => {
        const text = readFileSync(join(consumer, 'node_modules/headgate', path), 'utf8');
        return machine.some((part) => text.includes(part));
      });
    expect(found).toEqual([]);
  });

  test('the package depends on no other package', () => {
    expect(readdirSync(join(consumer, 'node_modules')).toSorted()).toEqual([
      '.bin',
      '.package-lock.json',
      '@types',
      'headgate',
    ]);
  });

  /** What only the repository has. npm resolves these links by `repository`, without which `npm run release` refuses. */
  const OF_THE_REPOSITORY = /^docs\/(?:dashboard\/|from-the-papers\.md$)/;

  /** The files that the links of a packed page lead to. */
  function targetsOf(page: string): readonly string[] {
    const prose = textOf(page).replaceAll(/^```[^]*?^```$/gm, '');
    return Array.from(prose.matchAll(/\]\((?!https?:|#)([^)\s#]+)/g), ([, target = '']) =>
      posix.join(posix.dirname(page), target),
    );
  }

  test('every link of a packed page leads to a packed file, or to one that only the repository has', () => {
    const packed = packedFiles();
    const links = packed.filter((path) => /\.(?:md|txt)$/.test(path)).flatMap(targetsOf);
    expect(links.length).toBeGreaterThan(100);
    const outside = [...new Set(links)].filter((path) => !packed.includes(path));
    expect(outside.filter((path) => !OF_THE_REPOSITORY.test(path))).toEqual([]);
    expect(outside.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('the pages for coding agents link to packed files only', () => {
    const packed = packedFiles();
    expect(['SKILL.md', 'llms.txt'].flatMap(targetsOf).filter((path) => !packed.includes(path))).toEqual([]);
  });

  test('every export of the package has a file', () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    const targets = Object.values(exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry as object),
    );
    expect(targets.filter((target) => !packedFiles().includes(String(target).slice(2)))).toEqual([]);
  });
});

describe('imports on this version of Node', () => {
  const use = `const limiter = new RateLimiter('memory:', { limits: [Limit.perMinute('rpm', 60)] });
    limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } })
      .then((lease) => console.log(lease.state, lease.consumed.rpm));`;

  test('the package can be imported', () => {
    write('esm.mjs', `import { Limit, RateLimiter } from 'headgate';\n${use}`);
    expect(node('esm.mjs')).toBe('open 1\n');
  });

  test('the package can be required', () => {
    write('cjs.cjs', `const { Limit, RateLimiter } = require('headgate');\n${use}`);
    expect(node('cjs.cjs')).toBe('open 1\n');
  });

  test('every entry can be required', () => {
    const script = `for (const entry of Object.keys(require('headgate/package.json').exports)) {
      if (entry !== './package.json') require('headgate' + entry.slice(1));
    }
    console.log('all');`;
    write('every.cjs', script);
    expect(node('every.cjs')).toBe('all\n');
  });

  test('all entry points share the same classes', () => {
    write(
      'entries.mjs',
      `import { BackendUnavailable, memory } from 'headgate';
       import { outage } from 'headgate/testing';
       import { describeBackend } from 'headgate/testing/backend';
       const store = outage(memory());
       store.start();
       const error = await store.backend.namespaces.read('default').catch((thrown) => thrown);
       console.log(error instanceof BackendUnavailable, typeof describeBackend);`,
    );
    expect(node('entries.mjs')).toBe('true function\n');
  });
});

test('telemetry loads no package: OpenTelemetry is handed in by the app', () => {
  write(
    'telemetry.mjs',
    `import { LimiterMetrics, openTelemetry } from 'headgate/telemetry';
     import { CloudWatchMetrics } from 'headgate/cloudwatch';
     new CloudWatchMetrics({ write: (line) => console.log(JSON.parse(line)['headgate.store.outage']) }).flush();
     console.log(typeof openTelemetry({}).onEvent, new LimiterMetrics().render().includes('headgate_store_outage 0'));`,
  );
  expect(node('telemetry.mjs')).toBe('0\nfunction true\n');
});

describe('the command line', () => {
  const bin = (...args: readonly string[]): string => npm(consumer, 'exec', '--offline', '--', 'headgate', ...args);

  test('the command runs by its name, from the tarball alone', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(bin('--version')).toBe(`${version}\n`);
    expect(JSON.parse(bin('check', '--json'))).toMatchObject({ ok: true, store: 'memory:' });
  });

  test.skipIf(process.platform === 'win32')('the command is executable, and names its interpreter', () => {
    const path = join(consumer, 'node_modules/headgate/dist/cli/main.js');
    expect(statSync(path).mode & 0o111).toBe(0o111);
    expect(readFileSync(path, 'utf8').split('\n')[0]).toBe('#!/usr/bin/env node');
  });

  test('an installed package finds its dashboard', () => {
    const script = `import { readDashboard } from 'headgate/server'; console.log([...readDashboard().keys()].toSorted().join());`;
    const files = ['icon', 'main', 'style'].map((name) => `${name}-\\w+\\.(?:css|js|svg)`);
    expect(node('--input-type=module', '-e', script)).toMatch(new RegExp(`^${files.join(',')}\n$`));
  });

  test('the tarball is smaller than 1.5 MB', () => {
    expect(tarballBytes).toBeLessThan(1_500_000);
  });

  test("import 'headgate' loads no code of the server, and import 'headgate/server' does", () => {
    const ofServer = /notFoundHandler|getRequestListener|safeParse/;
    const loading = (entry: string): string[] => loadedWith(entry).filter((path) => ofServer.test(textOf(path)));
    expect(loading('dist/index.js')).toEqual([]);
    expect(loading('dist/client/index.js')).toEqual([]);
    expect(loading('dist/server/index.js').length).toBeGreaterThan(0);
  });

  test("import 'headgate' loads no code of the file store, and not node:fs, which alone takes 1 ms", () => {
    const ofFile = /BEGIN IMMEDIATE|["']node:fs["']/;
    expect(loadedWith('dist/index.js').filter((path) => ofFile.test(textOf(path)))).toEqual([]);
  });

  test("import 'headgate' loads at most 4 files, because each file takes node time to load", () => {
    expect(loadedWith('dist/index.js').length).toBeLessThanOrEqual(4);
  });

  test.each(['express', 'fastify', 'fetch', 'hono', 'koa', 'lambda', 'next'])(
    "import 'headgate/%s' loads no module of node, so that it runs in other runtimes",
    (name) => {
      const ofNode = /^(?:import|export)\b[^'"();]*?["'](?:node:[^"']+)["']/m;
      expect(loadedWith(`dist/integrations/http/${name}.js`).filter((path) => ofNode.test(textOf(path)))).toEqual([]);
    },
  );

  test('the library contains no code of the libraries of the command line', () => {
    const theirs = /CommanderError|picocolors|isCancel/;
    const holding = packedFiles().filter(
      (path) =>
        path.endsWith('.js') && theirs.test(readFileSync(join(consumer, 'node_modules/headgate', path), 'utf8')),
    );
    expect(holding.length).toBeGreaterThan(0);
    expect(holding.filter((path) => !path.startsWith('dist/cli/'))).toEqual([]);
  });
});

describe('an application that is bundled with the memory store', () => {
  test('the bundle of an application runs, and contains only the application, the package and modules of Node', async () => {
    write(
      'app.ts',
      `import { Limit, RateLimiter } from 'headgate';
       const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('rpm', 2)] });
       const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
       const decisions = [await limiter.tryAcquire(ask), await limiter.tryAcquire(ask), await limiter.tryAcquire(ask)];
       console.log(decisions.map(({ granted }) => granted).join(' '));`,
    );
    const { metafile } = await build({
      absWorkingDir: consumer,
      entryPoints: ['app.ts'],
      outfile: 'app.mjs',
      bundle: true,
      platform: 'node',
      format: 'esm',
      metafile: true,
      logLevel: 'silent',
    });
    expect(node('app.mjs')).toBe('true true false\n');

    const strangers = Object.keys(metafile.inputs).filter(
      (path) => !/^(?:app\.ts|node_modules\/headgate\/dist\/)/.test(path),
    );
    const external = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
    expect(strangers).toEqual([]);
    expect(external.filter((path) => !path.startsWith('node:'))).toEqual([]);
  });
});

describe('a TypeScript program that uses the package', () => {
  const app = `import { type Decision, Limit, RateLimiter } from 'headgate';
    import { fakeClock } from 'headgate/testing';
    import type {} from 'headgate/testing/backend';

    const clock = fakeClock();
    const limiter = await RateLimiter.open('memory:', { limits: [Limit.perMinute('rpm', 60)], clock });
    const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
    {
      await using lease = await limiter.acquire({ ...ask, signal: new AbortController().signal });
      await lease.settle({ rpm: 2 });
    }
    const left = await limiter.available(ask);
    const decision: Decision<'rpm'> = await limiter.tryAcquire(ask);
    console.log(left.rpm, decision.granted ? decision.lease.consumed.rpm : decision.retryAfterMs);`;

  const commonJs = `import headgate = require('headgate');
    export const limiter: Promise<headgate.RateLimiter> = headgate.RateLimiter.open('memory:');`;

  test.each([
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ])('the program compiles and runs with module resolution $moduleResolution', (options) => {
    const folder = `typed-${options.moduleResolution}`;
    write(`${folder}/app.mts`, app);
    expect(compile(folder, { ...options, types: ['node'] })).toBe('');
    expect(node(`${folder}/out/app.mjs`)).toBe('58 1\n');
  });

  test('the program compiles as CommonJS that requires an ES module', () => {
    write('typed-cjs/app.cts', commonJs);
    expect(compile('typed-cjs', { module: 'nodenext', moduleResolution: 'nodenext', types: ['node'] })).toBe('');
  });

  const plainImport = `import { RateLimiter } from 'headgate';\nexport const limiter = new RateLimiter();`;

  // The table of docs/guide/modules.md.
  test.each([
    { type: 'module', module: 'node20', moduleResolution: 'nodenext' },
    { type: 'module', module: 'node16', moduleResolution: 'node16' },
    { type: 'module', module: 'preserve', moduleResolution: 'bundler' },
    { type: 'commonjs', module: 'nodenext', moduleResolution: 'nodenext' },
    { type: 'commonjs', module: 'node20', moduleResolution: 'node16' },
  ])('an import compiles in a package of type $type with module $module', ({ type, ...options }) => {
    const folder = `matrix-${type}-${options.module}`;
    write(`${folder}/package.json`, JSON.stringify({ type }));
    write(`${folder}/app.ts`, plainImport);
    expect(compile(folder, { ...options, types: ['node'] })).toBe('');
  });

  test.each(['node16', 'node18'])('an import in CommonJS does not compile with module %s', (module) => {
    const folder = `matrix-refused-${module}`;
    write(`${folder}/package.json`, JSON.stringify({ type: 'commonjs' }));
    write(`${folder}/app.ts`, plainImport);
    expect(compile(folder, { module, moduleResolution: 'node16', types: ['node'] })).toContain('TS1479');
  });

  test('the program compiles with the types of a browser instead of those of Node', () => {
    write('typed-dom/app.mts', app);
    const options = { module: 'nodenext', moduleResolution: 'nodenext', types: [], lib: ['es2022', 'dom'] };
    expect(compile('typed-dom', options)).toBe('');
  });

  // No `lib` of the language has AbortSignal: @types/node or lib dom provide it.
  test('the program compiles without the types of Node and of a browser', () => {
    write('typed-bare/app.mts', `import { RateLimiter } from 'headgate';\nexport const limiter = new RateLimiter();`);
    const output = compile('typed-bare', { module: 'nodenext', moduleResolution: 'nodenext', types: [] });
    expect(output).toBe('');
  });
});

function compile(folder: string, options: Readonly<Record<string, unknown>>): string {
  const common = { target: 'es2022', lib: ['es2022'], strict: true, skipLibCheck: false, outDir: 'out' };
  write(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions: { ...common, ...options }, include: ['app.*'] }));
  const { stdout, stderr } = spawnSync(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], {
    cwd: consumer,
    encoding: 'utf8',
  });
  return stdout + stderr;
}

function write(path: string, text: string): void {
  mkdirSync(join(consumer, path, '..'), { recursive: true });
  writeFileSync(join(consumer, path), text);
}

function node(...args: readonly string[]): string {
  return execFileSync(process.execPath, args, { cwd: consumer, encoding: 'utf8', env: plainEnvironment() });
}

function npm(cwd: string, ...args: readonly string[]): string {
  return execFileSync('npm', args, {
    cwd,
    encoding: 'utf8',
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  });
}

/** The environment without the variables of `npm test` and the test runner, which a user does not have. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:npm_|NODE_|VITEST|HEADGATE_)/i.test(name)),
  );
}

function linkNodeTypes(): void {
  mkdirSync(join(consumer, 'node_modules/@types'));
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(consumer, 'node_modules/@types/node'), 'junction');
}

function textOf(path: string): string {
  return readFileSync(join(consumer, 'node_modules/headgate', path), 'utf8');
}

/** The files of the package that importing an entry loads: its static imports, and theirs. */
function loadedWith(entry: string): string[] {
  const loaded = new Set([entry]);
  for (const path of loaded) {
    for (const [, specifier = ''] of textOf(path).matchAll(/^(?:import|export)\b[^'"();]*?["'](\.[^"']+)["']/gm)) {
      loaded.add(posix.join(posix.dirname(path), specifier));
    }
  }
  return [...loaded];
}

function packedFiles(): string[] {
  const folder = join(consumer, 'node_modules/headgate');
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll(sep, '/'),
    );
}
