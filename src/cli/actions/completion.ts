import type { Command } from 'commander';
import { readCommandTree } from '../completion/command-tree.js';
import { buildBashScript } from '../completion/bash.js';
import { buildFishScript } from '../completion/fish.js';
import { buildZshScript } from '../completion/zsh.js';
import type { Result } from '../result.js';
import type { CompletionShape } from '../shapes.js';

const BUILDERS = { bash: buildBashScript, zsh: buildZshScript, fish: buildFishScript } as const;

export function printCompletion(program: Command, shell: keyof typeof BUILDERS): Result<CompletionShape> {
  const script = BUILDERS[shell](readCommandTree(program));
  return { data: { shell, script }, text: () => script.trimEnd() };
}
