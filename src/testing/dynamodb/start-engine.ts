import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InfrastructureError } from '../../core/errors.js';
import { answers } from '../../local/engine/engine-answers.js';
import type { EngineName, EngineProgram } from '../../local/engine/engine-programs.js';
import { type EngineOptions, findUsableEngine } from './find-engine.js';
import { freePort } from '../../local/engine/free-port.js';
import { type Supervised, supervised } from './supervised.js';

/** A server with DynamoDB's protocol, with the settings that a client needs. */
export interface Engine extends AsyncDisposable {
  /** `endpoint`: an engine that was started outside of this process. */
  readonly name: EngineName | 'endpoint';
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The process id of the engine; null for `endpoint`. */
  readonly pid: number | null;
  /** Kills the engine and removes its tables. Resolves when its process has ended. No effect for `endpoint`. */
  readonly stop: () => Promise<void>;
}

/** AWS's documented example: ExtendDB accepts no other; the other engines accept any. */
const CREDENTIALS = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
} as const;
const REGION = 'us-east-1';

/** More than one, because another process can take a free port before the engine uses it. */
const PORTS_TRIED = 5;

const START_MS = 30_000;

/**
 * Starts an engine on a free port of this machine, empty and in memory, and resolves when it answers. It ends with
 * `stop()`, or with this process, however that ends. Without a name it uses the engine that `findEngine()` finds.
 * Rejects with `InfrastructureError` if there is none; call `findEngine` first to skip tests instead.
 */
export async function startEngine(name?: EngineName, options: EngineOptions = {}): Promise<Engine> {
  const found = findUsableEngine(name, options);
  if (found.status === 'unavailable') throw unavailable(found.reason);
  if (found.name === 'endpoint') {
    return engine({ name: 'endpoint', endpoint: found.endpoint, pid: null, stop: () => Promise.resolve() });
  }
  return startOnFreePort(found.name, found.program);
}

async function startOnFreePort(name: EngineName, program: EngineProgram): Promise<Engine> {
  const signal = AbortSignal.timeout(START_MS);
  let failure: unknown;
  for (let attempt = 0; attempt < PORTS_TRIED && !signal.aborted; attempt += 1) {
    const port = await freePort();
    const endpoint = `http://127.0.0.1:${port}`;
    try {
      const running = await supervised({
        command: program.command,
        args: program.args(port),
        environment: program.environment(port),
        folder: mkdtempSync(join(tmpdir(), `headgate-${name}-`)),
        readyLine: program.readyLine,
        signal,
      });
      await untilItAnswers(endpoint, { served: program.acceptsAnySignature, signal }, running);
      return engine({ name, endpoint, pid: running.pid, stop: running.kill });
    } catch (error) {
      failure = error;
    }
  }
  throw unavailable(`${name} did not start: ${failure instanceof Error ? failure.message : ''}`, failure);
}

async function untilItAnswers(
  endpoint: string,
  how: { readonly served: boolean; readonly signal: AbortSignal },
  running: Supervised,
): Promise<void> {
  const endedFirst = running.ended.then((last) => {
    throw new Error(last);
  });
  try {
    await Promise.race([endedFirst, answers(endpoint, how)]);
  } catch (error) {
    await running.kill();
    throw error;
  }
}

function engine(parts: Pick<Engine, 'name' | 'endpoint' | 'pid' | 'stop'>): Engine {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION } = process.env;
  const foreign = parts.name === 'endpoint';
  return {
    ...parts,
    region: (foreign ? AWS_REGION : undefined) ?? REGION,
    credentials:
      foreign && AWS_ACCESS_KEY_ID !== undefined && AWS_SECRET_ACCESS_KEY !== undefined
        ? { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY }
        : CREDENTIALS,
    [Symbol.asyncDispose]: parts.stop,
  };
}

function unavailable(reason: string, cause?: unknown): InfrastructureError {
  return new InfrastructureError('infrastructure.engine-unavailable', reason, { cause });
}
