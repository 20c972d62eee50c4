import { FUNCTIONS } from '../template/names.js';
import type { Change, Stack } from './cloudformation.js';
import type { FunctionCode } from './functions.js';
import { isEmptyShell } from './stack-status.js';
import type { StackTools, Watcher } from './stack-tools.js';

interface Remembered {
  readonly name: string;
  /** null: it could not be read. */
  readonly code: FunctionCode | null;
}

export interface RememberedCode {
  /** Uploads what a roll-back has replaced. Gives what there is to tell of it; null: nothing. Never throws. */
  restore(watcher: Watcher): Promise<string | null>;
}

/**
 * The code that the functions run before an update changes them. To CloudFormation the code of a function is what its template
 * says, which is a placeholder: a roll-back may put that in the place of the code that was uploaded.
 */
export async function rememberCode(
  tools: StackTools,
  before: Stack | null,
  changes: readonly Change[],
): Promise<RememberedCode> {
  const ids: readonly string[] = Object.values(FUNCTIONS);
  const touched = changes.filter(({ action, logicalId }) => action === 'Modify' && ids.includes(logicalId));
  if (before === null || isEmptyShell(before) || touched.length === 0) return { restore: () => Promise.resolve(null) };
  const resources = await tools.cloudformation.readResources(before.name);
  const names = touched.flatMap(({ logicalId }) => resources[logicalId] ?? []);
  const remembered = await Promise.all(
    // A deployment does not depend on it: without the permission to read code, an update is as it would be without this.
    names.map(async (name) => ({ name, code: await tools.functions.readCode(name).catch(() => null) })),
  );
  return {
    async restore(watcher) {
      const told: string[] = [];
      for (const one of remembered) {
        const note = await restoreOne(tools, watcher, one).catch((error: unknown) => failureNote(one.name, error));
        if (note !== null) told.push(note);
      }
      return told.length === 0 ? null : told.join('. ');
    },
  };
}

async function restoreOne(tools: StackTools, watcher: Watcher, { name, code }: Remembered): Promise<string | null> {
  if (code === null) return null;
  const found = await tools.functions.describe(name);
  if (found === null || found.sha256 === code.sha256) return null;
  watcher.onStep(`putting back the code of ${name}`);
  await tools.functions.uploadCode(name, code.bytes);
  return `The code that ${name} had was put back`;
}

function failureNote(name: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The code that ${name} had could not be put back (${reason}): headgate upgrade uploads that of this package`;
}
