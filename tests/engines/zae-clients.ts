import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { LegacyWorld } from '../support/migration/legacy-world.js';

/** A folder with a virtual environment for each release, named by its version. `.ci/run` creates it. */
const FOLDER = process.env['HEADGATE_ZAE_LIMITER'];

const pythonOf = (release: string): string => join(FOLDER ?? '', release, 'bin', 'python');

/** Whether a release is installed, and the note for a title if it is not. */
export function zaeRelease(release: string): { readonly missing: boolean; readonly note: string } {
  if (FOLDER !== undefined && existsSync(pythonOf(release))) return { missing: false, note: '' };
  const reason = FOLDER === undefined ? 'HEADGATE_ZAE_LIMITER names no folder' : `${pythonOf(release)} is not there`;
  return { missing: true, note: ` (skipped: ${reason})` };
}

export interface ZaeAnswer {
  readonly ok: boolean;
  readonly error?: string;
  readonly message?: string;
}

/** A process that runs a published release of zae-limiter on a table of the test. */
export class ZaeClient implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;
  #stderr = '';

  constructor(release: string, { engine }: LegacyWorld, table: string) {
    const script = join(import.meta.dirname, 'zae-client.py');
    const { endpoint, region, credentials } = engine;
    const env = {
      ...process.env,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      AWS_DEFAULT_REGION: region,
    };
    this.#child = spawn(pythonOf(release), [script, table, endpoint, region], { env });
    this.#child.stderr?.on('data', (data: Buffer) => (this.#stderr += data.toString()));
    this.#lines = createInterface({ input: this.#child.stdout! });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** The answer of the release, also a refusal. */
  async ask(request: Readonly<Record<string, unknown>>): Promise<ZaeAnswer> {
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`zae-limiter ended: ${this.#stderr}`);
    return JSON.parse(value) as ZaeAnswer;
  }

  /** Like `ask`, but throws if the release refuses. */
  async do(name: string, request: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const answer = await this.ask({ do: name, ...request });
    if (!answer.ok)
      throw new Error(`zae-limiter ${name} ${JSON.stringify(request)}: ${answer.error} ${answer.message}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin?.end();
    await ended;
    this.#lines.close();
  }
}
