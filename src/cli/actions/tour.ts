import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TourShape } from '../shapes.js';
import { tour } from '../tour.js';

const STEP = /^\d+\. (.*)$/;

/** What the tour shows, as data: the title of each step, and its lines. */
export async function tourSteps(): Promise<TourShape> {
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

/** Two of the tour's processes are this program again. */
export async function startTour(print: (text: string) => void): Promise<void> {
  const [, program = ''] = process.argv;
  await tour(print, async (file) => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'take', file]);
    return Number(stdout);
  });
}
