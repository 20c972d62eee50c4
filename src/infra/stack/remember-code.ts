import { FUNCTIONS } from '../template/names.js';
import type { Change, Stack } from './cloudformation.js';
import type { FunctionCode } from './functions.js';
import { isEmptyShell } from './stack-status.js';
import type { StackTools, Watcher } from './stack-tools.js';

interface SavedCode {
  readonly name: string;
  /** null: the code could not be read. */
  readonly code: FunctionCode | null;
}

export interface RememberedCode {
  /** Uploads the saved code where a roll-back replaced it. Returns a note for the user, or null. Never throws. */
  restore(watcher: Watcher): Promise<string | null>;
}

/**
 * Saves the code that the functions run before an update changes them. CloudFormation takes the code in the template,
 * which is a placeholder, as the function's code: a roll-back may replace the uploaded code with it.
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
  const saved = await Promise.all(
    // Best effort: without the permission to read code, the update runs without this safeguard.
    names.map(async (name) => ({ name, code: await tools.functions.readCode(name).catch(() => null) })),
  );
  return {
    async restore(watcher) {
      const notes: string[] = [];
      for (const one of saved) {
        const note = await restoreOne(tools, watcher, one).catch((error: unknown) => failureNote(one.name, error));
        if (note !== null) notes.push(note);
      }
      return notes.length === 0 ? null : notes.join('. ');
    },
  };
}

async function restoreOne(tools: StackTools, watcher: Watcher, { name, code }: SavedCode): Promise<string | null> {
  if (code === null) return null;
  const found = await tools.functions.describe(name);
  if (found === null || found.sha256 === code.sha256) return null;
  watcher.onStep(`restoring the code of ${name}`);
  await tools.functions.uploadCode(name, code.bytes);
  return `The previous code of ${name} was restored`;
}

function failureNote(name: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The previous code of ${name} could not be restored (${reason}): headgate upgrade uploads the code of this package`;
}
