import type { Definition } from '../../run/define-command.js';

/** Not in the help: the tour starts two processes with this command. */
export const define: Definition = (command, { terminal }) => {
  command.action(async (path: string) => {
    const { takeFromFile } = await import('../../tour.js');
    terminal.out(`${await takeFromFile(path)}\n`);
  });
};
