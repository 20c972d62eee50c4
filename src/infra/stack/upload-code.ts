import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InfrastructureError } from '../../core/errors.js';
import { FUNCTIONS } from '../template/names.js';
import { type FunctionState, readinessOf, type StackResources, type StackTools, type Watcher } from './stack-tools.js';
import { type CodeZip, zipCode } from './zip-code.js';

export interface UploadedFunction {
  readonly name: string;
  /** false: the function already has this code. In a dry run: whether it would be uploaded. */
  readonly uploaded: boolean;
  readonly sha256: string;
}

export interface UploadRequest {
  readonly resources: StackResources;
  readonly bundles: readonly Bundle[];
  readonly dryRun: boolean;
}

const PAUSE_MS = 500;
const READY_MS = 300_000;

/** Uploads this package's code to the functions of a stack. Skips functions that already have it. */
export async function uploadCode(
  tools: StackTools,
  watcher: Watcher,
  { resources, bundles, dryRun }: UploadRequest,
): Promise<readonly UploadedFunction[]> {
  const done: UploadedFunction[] = [];
  for (const { logicalId, code } of bundles) {
    const name = resources[logicalId];
    if (name === undefined) continue;
    const before = dryRun ? await describe(tools, name) : await untilIdle(tools, name);
    const isCurrent = before.sha256 === code.sha256 && readinessOf(before).kind === 'ready';
    if (!isCurrent && !dryRun) {
      watcher.onStep(`uploading the code of ${name}`);
      await tools.functions.uploadCode(name, code.bytes);
      refuseFailure(await untilIdle(tools, name), code.sha256);
    }
    done.push({ name, uploaded: !isCurrent, sha256: code.sha256 });
  }
  return done;
}

async function describe({ functions }: StackTools, name: string): Promise<FunctionState> {
  const found = await functions.describe(name);
  if (found !== null) return found;
  const message = `Function ${name} of the stack does not exist: it was deleted outside of the stack`;
  throw new InfrastructureError('infrastructure.function-missing', message);
}

/** Lambda refuses new code while another update is in progress, for example after a change of the stack. */
async function untilIdle(tools: StackTools, name: string): Promise<FunctionState> {
  const startMs = tools.now();
  for (;;) {
    const found = await describe(tools, name);
    if (readinessOf(found).kind !== 'busy') return found;
    if (tools.now() - startMs > READY_MS) {
      const message = `Lambda did not finish updating function ${name} in 5 minutes (${found.state}, ${found.update})`;
      throw new InfrastructureError('infrastructure.still-running', message, { retryable: true });
    }
    await tools.pause(PAUSE_MS);
  }
}

function refuseFailure(found: FunctionState, sha256: string): void {
  const readiness = readinessOf(found);
  if (readiness.kind === 'failed') {
    const message = `Lambda did not accept the code of ${found.name}: ${readiness.reason}`;
    throw new InfrastructureError('infrastructure.code-failed', message);
  }
  if (found.sha256 === sha256) return;
  const message = `Function ${found.name} does not run the uploaded code: another upload ran at the same time`;
  throw new InfrastructureError('infrastructure.code-failed', message, { retryable: true });
}

/** A function of the stack, and this package's code for it. */
export interface Bundle {
  /** The logical id of the function. */
  readonly logicalId: string;
  readonly file: string;
  readonly code: CodeZip;
}

const FILES = [
  { logicalId: FUNCTIONS.stream, file: 'stream.cjs' },
  { logicalId: FUNCTIONS.reconciler, file: 'reconciler.cjs' },
] as const;

/** Reads the code of the functions from this package's build. */
export function readBundles(folder: string = join(packageFolder(), 'dist', 'lambda')): readonly Bundle[] {
  return FILES.map(({ logicalId, file }) => {
    const path = join(folder, file);
    if (!existsSync(path)) {
      throw new InfrastructureError('infrastructure.code-missing', `This package lacks ${path}: install it again`);
    }
    return { logicalId, file, code: zipCode(readFileSync(path, 'utf8')) };
  });
}

/** The nearest parent folder with a package.json. The bundler puts this file into a chunk at any depth. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
