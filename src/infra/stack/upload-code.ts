import { InfrastructureError } from '../../core/errors.js';
import type { StackResources } from './cloudformation.js';
import { type FunctionState, readinessOf } from './functions.js';
import type { Bundle } from './read-bundles.js';
import type { StackTools, Watcher } from './stack-tools.js';

export interface UploadedFunction {
  readonly name: string;
  /** false: it has this code already. In a dry run: whether it would be. */
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

/** Gives the functions of a stack the code of this package; those that have it are left alone. */
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
    const isThere = before.sha256 === code.sha256 && readinessOf(before).kind === 'ready';
    if (!isThere && !dryRun) {
      watcher.onStep(`uploading the code of ${name}`);
      await tools.functions.uploadCode(name, code.bytes);
      refuseFailure(await untilIdle(tools, name), code.sha256);
    }
    done.push({ name, uploaded: !isThere, sha256: code.sha256 });
  }
  return done;
}

async function describe({ functions }: StackTools, name: string): Promise<FunctionState> {
  const found = await functions.describe(name);
  if (found !== null) return found;
  const message = `There is no function ${name}, although the stack has it: somebody deleted it`;
  throw new InfrastructureError('infrastructure.function-missing', message);
}

/** Lambda takes no code while it changes something else, as it does after the stack was changed. */
async function untilIdle(tools: StackTools, name: string): Promise<FunctionState> {
  const startMs = tools.now();
  for (;;) {
    const found = await describe(tools, name);
    if (readinessOf(found).kind !== 'busy') return found;
    if (tools.now() - startMs > READY_MS) {
      const message = `Lambda was not done with function ${name} after 5 minutes (${found.state}, ${found.update})`;
      throw new InfrastructureError('infrastructure.still-running', message, { retryable: true });
    }
    await tools.pause(PAUSE_MS);
  }
}

function refuseFailure(found: FunctionState, sha256: string): void {
  const readiness = readinessOf(found);
  if (readiness.kind === 'failed') {
    const message = `Lambda could not take the code of ${found.name}: ${readiness.reason}`;
    throw new InfrastructureError('infrastructure.code-failed', message);
  }
  if (found.sha256 === sha256) return;
  const message = `Function ${found.name} runs other code than was uploaded: somebody else uploads at the same time`;
  throw new InfrastructureError('infrastructure.code-failed', message, { retryable: true });
}
