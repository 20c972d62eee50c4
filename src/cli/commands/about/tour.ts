import type { Command } from 'commander';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { addExamples, type Definition } from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';

/** `--json` of `tour` */
export interface TourShape {
  readonly steps: readonly {
    readonly title: string;
    readonly lines: readonly string[];
  }[];
}

export const define: Definition = (tour, { terminal }) => {
  addExamples(tour, ['tour']).action(async (_options: unknown, command: Command) => {
    if (command.optsWithGlobals<GlobalOptions>().json === true) {
      terminal.out(`${JSON.stringify(await tourSteps(), null, 2)}\n`);
    } else {
      await startTour((text) => terminal.out(`${text}\n`));
    }
  });
};

const STEP = /^\d+\. (.*)$/;

/** The title and the lines of each step. */
async function tourSteps(): Promise<TourShape> {
  const steps: { title: string; lines: string[] }[] = [];
  await startTour((text) => {
    for (const line of text.split('\n')) {
      const [, title] = STEP.exec(line) ?? [];
      if (title !== undefined) steps.push({ title, lines: [] });
      else if (line !== '') steps.at(-1)?.lines.push(line.trim());
    }
  });
  return { steps };
}

/** The two processes of the tour are this program, called with `take`. */
async function startTour(print: (text: string) => void): Promise<void> {
  const { tour } = await import('../../tour.js');
  const [, program = ''] = process.argv;
  await tour(print, async (file) => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'take', file]);
    return Number(stdout);
  });
}
