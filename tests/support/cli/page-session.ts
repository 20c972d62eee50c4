import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, type CodeBlock, ROOT } from '../docs/code-blocks.js';
import { type CliRun, runCli } from './run-cli.js';

/** A command of a page, with the output that the page shows. */
export interface Step {
  readonly line: string;
  readonly output: string;
}

/** Whether a block is part of the session of its page: not if it begins with the installation of a package. */
export function isSession({ language, text }: CodeBlock): boolean {
  return language === 'console' && !text.startsWith('$ npm install ');
}

/** The commands of the `console` blocks of a page, in order. A line that ends in a backslash continues in the next one. */
export function readSession(page: string): readonly Step[] {
  const blocks = blocksOf(page).filter(isSession);
  return blocks.flatMap(({ text }) =>
    text
      .split(/^\$ /m)
      .slice(1)
      .map((typed) => {
        const end = typed.search(/(?<!\\)\n/);
        return { line: typed.slice(0, end), output: typed.slice(end + 1) };
      }),
  );
}

/** Runs the commands one after another. The files that pages name are in the folder. */
export async function typeAll(steps: readonly Step[], folder: string): Promise<readonly Step[]> {
  const files = ['./limits.db', 'limits.yaml'].map((name) => [name, join(folder, name)] as const);
  const toFolder = (line: string): string => files.reduce((text, [name, path]) => text.replaceAll(name, path), line);
  const fromFolder = (output: string): string =>
    files.reduce((text, [name, path]) => text.replaceAll(path, name), output);
  const exported: Record<string, string> = {};
  const seen: Step[] = [];
  let lastExit = 0;
  for (const { line } of steps) {
    if (line.startsWith('export ')) {
      for (const [, name = '', value = ''] of toFolder(line).matchAll(/(\w+)=(\S+)/g)) exported[name] = value;
    }
    const { stdout, stderr, exitCode } = await type(toFolder(line), { env: exported, lastExit, folder });
    lastExit = exitCode;
    seen.push({ line, output: fromFolder(stdout + stderr) });
  }
  return seen;
}

interface Shell {
  readonly env: Record<string, string>;
  readonly lastExit: number;
  readonly folder: string;
}

/** Runs a line: `headgate` in this process, any other program with `sh` in the folder. */
async function type(line: string, { env, lastExit, folder }: Shell): Promise<CliRun> {
  const words = line
    .replace(/^npx /, '')
    .replace(/ < \/dev\/null$/, '')
    .match(/'[^']*'|\S+/g);
  const [program, ...args] = (words ?? []).map((word) => word.replaceAll("'", ''));
  if (program === 'headgate') return runCli(args, { env });
  const script = `(exit ${lastExit})\n${line}`;
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { cwd: folder, encoding: 'utf8' });
  return { exitCode: status ?? 1, stdout, stderr };
}

/** What the page shows and what was printed, without the times and ids that may differ. */
export function compared(steps: readonly Step[]): readonly string[] {
  return steps.map(({ line, output }) => `$ ${line}\n${normalise(output)}`);
}

function normalise(output: string): string {
  return output
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?Z?/g, '<time>')
    .replaceAll(/^\d{4}-\d\d(?= )/gm, '<month>')
    .replaceAll(/(?<=answers in )(?:less than 1|\d+) ms/g, '<duration>')
    .replaceAll(/(?<=in )(?:1 h(?: 1 min)?|5\d min(?: \d+ s)?)/g, '<duration>')
    .replaceAll(/(?<=Lease |id {9}|\(id )[\w~-]{11}/g, '<id>')
    .replaceAll(/^[\w~-]{11}(?= {2}\S+ +\S+ +slots=)/gm, '<id>');
}

/** Writes the output into the page. Review the difference afterwards. */
export function record(page: string, steps: readonly Step[], seen: readonly Step[]): void {
  let text = readFileSync(join(ROOT, page), 'utf8');
  let from = 0;
  for (const [at, { line, output }] of steps.entries()) {
    const typed = `$ ${line}\n${output}`;
    const printed = `$ ${line}\n${timeless(seen[at]?.output ?? '')}`;
    from = text.indexOf(typed, from);
    text = text.slice(0, from) + printed + text.slice(from + typed.length);
    from += printed.length;
  }
  writeFileSync(join(ROOT, page), text);
}

/** A fixed time, so that a new recording of a page changes only what really differs. A time of 2099 is one that was typed. */
function timeless(output: string): string {
  let hour = 9;
  return output
    .replaceAll(/(?!2099)\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, '2027-01-15 10:00:00Z')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d(?!:)/g, () => `2027-01-15 ${String(hour++).padStart(2, '0')}:00`)
    .replaceAll(/^\d{4}-\d\d(?= )/gm, '2027-01');
}
