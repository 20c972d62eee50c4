import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { transformSync } from 'esbuild';
import { plainEnvironment } from '../cli/run-cli.js';
import { type RunningProgram, startProgram } from '../processes/running-program.js';
import { blocksOf, ROOT } from './code-blocks.js';

const run = promisify(execFile);

/** A folder of a user, who saves and starts there what the pages print. */
export class FirstProject {
  readonly folder: string;
  readonly #env = plainEnvironment();

  constructor(folder: string) {
    this.folder = folder;
  }

  save(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  /** Saves regions of an example as the page prints them, without their types, followed by `more`. */
  saveProgram(name: string, page: string, regions: readonly string[], more = ''): void {
    const printed = regions.map((region) => blockQuoting(page, region)).join('\n');
    this.save(name, `${transformSync(printed, { loader: 'ts', format: 'esm', target: 'node20' }).code}\n${more}`);
  }

  /** The output of `npx headgate`, with an environment that names no store unless `env` does. */
  async headgate(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
    const options = { cwd: this.folder, env: { ...this.#env, ...env } };
    return (await run('npx', ['--no-install', 'headgate', ...args], options)).stdout;
  }

  /** The output of `node`. */
  async node(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
    return (await run(process.execPath, args, { cwd: this.folder, env: { ...this.#env, ...env } })).stdout;
  }

  /** Starts a program that does not end by itself. */
  start(name: string, env: NodeJS.ProcessEnv = {}): RunningProgram {
    return startProgram(name, { cwd: this.folder, env: { ...this.#env, ...env } });
  }
}

/** An empty folder in which a user has installed the packed package. */
export class FirstInstall implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'headgate-first-use-'));

  constructor() {
    const manifest = { name: 'first-use', private: true, type: 'module' };
    writeFileSync(join(this.#folder, 'package.json'), JSON.stringify(manifest));
    const packed = npm(ROOT, 'pack', '--json', '--ignore-scripts', '--pack-destination', this.#folder);
    const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
    const tarball = join(this.#folder, filename);
    npm(this.#folder, 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', tarball);
  }

  /** A new folder, whose programs find what is installed. */
  open(name: string): FirstProject {
    const folder = join(this.#folder, name);
    mkdirSync(folder);
    return new FirstProject(folder);
  }

  /** Links an optional package, so that no test needs a registry. */
  link(name: string): void {
    const target = join(this.#folder, 'node_modules', name);
    mkdirSync(join(target, '..'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), target, 'junction');
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function npm(cwd: string, ...args: readonly string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The block of a page that quotes a region, such as `examples/guide/waiting.ts#wait`. */
export function blockQuoting(page: string, region: string): string {
  const block = blocksOf(page).find(({ quotes }) => quotes === region);
  if (block === undefined) throw new Error(`${page} does not quote ${region}`);
  return block.text;
}
