import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InfrastructureError } from '../../core/errors.js';
import { answers } from '../../local/engine/engine-answers.js';
import type { EngineName, EngineProgram } from '../../local/engine/engine-programs.js';
import { type EngineOptions, findUsableEngine } from './find-engine.js';
import { freePort } from '../../local/engine/free-port.js';
import { type Supervised, supervised } from './supervised.js';

/** A server that speaks DynamoDB's protocol, with what a client needs to use it. */
export interface Engine extends AsyncDisposable {
  /** `endpoint` is one that somebody else started. */
  readonly name: EngineName | 'endpoint';
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The engine's process; null for one that somebody else started. */
  readonly pid: number | null;
  /** Kills the engine and forgets its tables; resolves once its process is gone. Does nothing to somebody else's. */
  readonly stop: () => Promise<void>;
}

/** AWS's documented example, which is the only one that ExtendDB takes; the others take any. */
const CREDENTIALS = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
} as const;
const REGION = 'us-east-1';

/** Between the choice of a free port and its use another process can take it. */
const PORTS_TRIED = 5;

const START_MS = 30_000;

/**
 * Starts an engine of this machine on a port of its own, empty and in memory, and resolves once it answers.
 * It ends with `stop()`, or with this process, however that dies. Without a name it takes what `findEngine()` finds.
 * Rejects with `InfrastructureError` if there is none; ask `findEngine` first to skip tests instead.
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
