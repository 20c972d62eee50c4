import { Argument } from 'commander';
import { addVerb, type CommandContext, withoutStore } from '../define-command.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function addCompletionCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'completion',
    summary: 'Print a script that completes commands and options in a shell',
    examples: [
      'completion bash > ~/.local/share/bash-completion/completions/headgate',
      'completion zsh > "${fpath[1]}/_headgate"',
      'completion fish > ~/.config/fish/completions/headgate.fish',
    ],
  })
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(
      withoutStore(context, async () => {
        const { printCompletion } = await import('../actions/completion.js');
        return async ([shell]) => printCompletion(context.program, shell as (typeof SHELLS)[number]);
      }),
    );
}
