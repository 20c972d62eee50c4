import { addVerb, type CommandContext } from '../define-command.js';

export function addTourCommand({ program, terminal }: CommandContext): void {
  addVerb(program, {
    usage: 'tour',
    summary: 'Show what Headgate does, in a few seconds and without a store',
    examples: ['tour'],
  }).action(async () => {
    const { startTour } = await import('../actions/tour.js');
    await startTour((text) => terminal.out(`${text}\n`));
  });
  // What the two processes of the tour are started as.
  program.command('take <file>', { hidden: true }).action(async (path: string) => {
    const { takeFromFile } = await import('../tour.js');
    terminal.out(`${await takeFromFile(path)}\n`);
  });
}
