import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { tour } from '../tour.js';

/** Two of the tour's processes are this program again. */
export async function startTour(print: (text: string) => void): Promise<void> {
  const [, program = ''] = process.argv;
  await tour(print, async (file) => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'take', file]);
    return Number(stdout);
  });
}
