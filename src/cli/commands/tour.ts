import type { Command } from 'commander';
import { addVerb, type CommandContext } from '../define-command.js';
import type { GlobalOptions } from '../global-options.js';

export function addTourCommand({ program, terminal }: CommandContext): void {
  addVerb(program, {
    usage: 'tour',
    summary: 'Show what Headgate does, in a few seconds and without a store',
    examples: ['tour'],
  }).action(async (_options: unknown, command: Command) => {
    const { startTour, tourSteps } = await import('../actions/tour.js');
    if (command.optsWithGlobals<GlobalOptions>().json === true) {
      terminal.out(`${JSON.stringify(await tourSteps(), null, 2)}\n`);
    } else {
      await startTour((text) => terminal.out(`${text}\n`));
    }
  });
  // What the two processes of the tour are started as.
  program.command('take <file>', { hidden: true }).action(async (path: string) => {
    const { takeFromFile } = await import('../tour.js');
    terminal.out(`${await takeFromFile(path)}\n`);
  });
}
