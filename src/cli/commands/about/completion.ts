import { buildBashScript } from '../../completion/bash.js';
import { readCommandTree } from '../../completion/command-tree.js';
import { buildFishScript } from '../../completion/fish.js';
import { buildZshScript } from '../../completion/zsh.js';
import { addExamples, type Definition, withoutStore } from '../../run/define-command.js';

/** `--json` of `completion` */
export interface CompletionShape {
  readonly shell: 'bash' | 'zsh' | 'fish';
  readonly script: string;
}

const BUILDERS = { bash: buildBashScript, zsh: buildZshScript, fish: buildFishScript } as const;

type Shell = keyof typeof BUILDERS;

export const define: Definition = (command, context) => {
  command.registeredArguments[0]?.choices(Object.keys(BUILDERS));
  addExamples(command, [
    'completion bash > ~/.local/share/bash-completion/completions/headgate',
    'completion zsh > "${fpath[1]}/_headgate"',
    'completion fish > ~/.config/fish/completions/headgate.fish',
  ]).action(
    withoutStore(context, async ([word]) => {
      const shell = word as Shell;
      const script = BUILDERS[shell](readCommandTree(await context.createWholeProgram()));
      const data: CompletionShape = { shell, script };
      return { data, text: () => script.trimEnd() };
    }),
  );
};
