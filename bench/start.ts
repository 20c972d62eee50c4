import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findEngine, startEngine } from 'headgate/testing/dynamodb';
import { clientOf, createTables, leanReach, TABLE } from './dynamodb-peers.js';
import { type Comparison, compare, interleave } from './interleave.js';
import { lambdaBundles } from './lambda-bundles.js';
import { type Row, within } from './table.js';

const IMPORT_MS = 15;

/** What processes use until they are of use. Each figure is of a process of its own. */
export async function* startRows(): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-start-'));
  const module = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  try {
    const empty = module('empty.mjs', 'export {};');
    const headgate = import.meta.resolve('headgate');
    const importing = module('importing.mjs', `import '${headgate}';`);
    const main = new URL('cli/main.js', headgate).pathname;
    yield within('import headgate, over an empty module', 'ms', await importMs(module, headgate, empty), IMPORT_MS);
    const meter = module('meter.cjs', CPU_AT_EXIT);
    const cpuMs = async (...args: readonly string[]): Promise<number> => cpuOf(['--require', meter, ...args]);
    for (const [name, args] of [
      ['CPU of a process that imports headgate / of an empty one', [importing]],
      ['CPU of headgate --help / of an empty process', [main, '--help']],
    ] as const) {
      const both = await compare(
        async () => cpuMs(...args),
        async () => cpuMs(empty),
      );
      yield { name, unit: 'ms', ...both };
    }
    if (findEngine('dynoxide').status === 'unavailable') return;
    const cold = await coldStart(folder, module);
    yield {
      name: 'CPU of a bundled Lambda to its first decision / SDK',
      unit: 'ms',
      goal: 0.5,
      goalIs: 'most',
      ...cold,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prints the CPU of the whole process, with the start of Node. */
const CPU_AT_EXIT = `process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  require('node:fs').writeSync(2, 'cpu ' + (user + system) / 1000);
});`;

function cpuOf(args: readonly string[]): number {
  const { stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const found = /cpu ([\d.]+)$/.exec(stderr)?.[1];
  if (status !== 0 || found === undefined) throw new Error(`node ${args.join(' ')} ended with ${status}: ${stderr}`);
  return Number(found);
}

type WriteModule = (name: string, text: string) => string;

async function importMs(module: WriteModule, headgate: string, empty: string): Promise<readonly number[]> {
  const measure = module(
    'measure.mjs',
    `const startMs = performance.now();
     await import(process.argv[2]);
     console.log(performance.now() - startMs);`,
  );
  const rounds = await interleave(
    async () => printed(measure, headgate),
    async () => printed(measure, pathToFileURL(empty).href),
  );
  return rounds.map(({ ours, theirs }) => ours - theirs);
}

/** CPU from the import of a bundle, as of a Lambda function, to the answer of its first acquire. */
async function coldStart(folder: string, module: WriteModule): Promise<Comparison> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  try {
    await createTables(client);
    const { lean, sdk } = await lambdaBundles(folder, { table: TABLE, ...leanReach(engine) });
    const measure = module(
      'measure.cjs',
      `const start = process.cpuUsage();
       require(process.argv[2]).first.then(() => {
         const { user, system } = process.cpuUsage(start);
         console.log((user + system) / 1000);
         process.exit();
       });`,
    );
    return await compare(
      async () => printed(measure, lean),
      async () => printed(measure, sdk),
    );
  } finally {
    client.destroy();
  }
}

function printed(...args: readonly string[]): number {
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}
