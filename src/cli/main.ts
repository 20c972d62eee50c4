import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { takeFromFile, tour } from './tour.js';

const [, , command, path = ''] = process.argv;

if (command === 'take') {
  console.log(await takeFromFile(path));
} else {
  // A reader that has seen enough (`| head`) is no failure.
  process.stdout.on('error', () => process.exit(0));
  await tour((text) => console.log(text), startTaker);
}

async function startTaker(file: string): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), 'take', file]);
  return Number(stdout);
}
