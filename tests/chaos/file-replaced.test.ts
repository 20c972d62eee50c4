import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HolderCommand, HolderOrder } from './file-holder.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';
import { REPLACEMENTS, replaceFile } from '../support/file/replace-file.js';

const SLOTS = 10;
const PROCESSES = 3;
/** Each process notices a replacement within a second. The rest is for a busy machine. */
const NOTICED_MS = 1_500;
const folder = mkdtempSync(join(tmpdir(), 'headgate-replaced-'));
let start: Awaited<ReturnType<typeof forkable>>;

beforeAll(async () => {
  start = await forkable(new URL('./file-holder.ts', import.meta.url));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const nextMessage = async (child: ChildProcess): Promise<number> => (await once(child, 'message'))[0];

async function tellAll(children: readonly ChildProcess[], command: HolderCommand): Promise<readonly number[]> {
  const answers = children.map(nextMessage);
  for (const child of children) child.send(command);
  return Promise.all(answers);
}

describe('a file that is replaced at a random moment', () => {
  test.each(REPLACEMENTS)(
    'processes with slots of a file agree on one store a second after it is replaced: %s',
    { timeout: 60_000 },
    async (how) => {
      const home = join(folder, how.replaceAll(' ', '-'));
      mkdirSync(home);
      const path = join(home, 'limits.db');
      const holder = (): ChildProcess => start(JSON.stringify({ path, slots: SLOTS } satisfies HolderOrder));
      const children = Array.from({ length: PROCESSES }, holder);
      await Promise.all(children.map(nextMessage));
      await delay(200 + Math.random() * 800);
      await replaceFile(path, how);
      // The new process starts after the replacement, before or after the others notice it.
      await delay(Math.random() * NOTICED_MS);
      children.push(holder());
      const exits = children.map(ended);
      await nextMessage(children.at(-1)!);
      await delay(NOTICED_MS);
      await tellAll(children, 'count');
      await delay(100);
      await tellAll(children, 'stop');
      const alive = await tellAll(children, 'count');
      for (const child of children) child.disconnect();
      await Promise.all(exits);
      console.log(`${how}: ${alive.join(' + ')} alive of ${SLOTS}`);
      expect(alive.reduce((sum, count) => sum + count, 0)).toBe(SLOTS);
    },
  );
});
