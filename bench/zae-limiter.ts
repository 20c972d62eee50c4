import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { type Engine, startEngine } from 'headgate/testing/dynamodb';
import { tableDefinition } from '../src/backends/dynamodb/table/table-definition.js';
import { clientOf, createTables, headgate, leanReach } from './dynamodb-peers.js';
import { compare } from './interleave.js';
import { perSecond } from './load.js';
import { sized } from './settings.js';
import type { Row } from './table.js';

const RELEASE = '0.17.0';
const ZAE_TABLE = 'zae-bench';
const AT_ONCE = 256;
const ROUND_MS = 1_000;
const MANY = sized(10_000);
const INSTALL_MS = 120_000;

/** Both on the same engine, with two limits per key: Headgate in this process, zae-limiter in one of Python. */
export async function* zaeLimiterRows(): AsyncGenerator<Row> {
  using installed = installZae();
  if ('reason' in installed) {
    console.log(`zae-limiter ${RELEASE}: skipped, ${installed.reason}`);
    return;
  }
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  await createTables(client);
  await createZaeTable(client);
  client.destroy();
  const child = startZae(installed.python, engine);
  const figures = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    for (const [count, where] of [[1, 'one bucket'] as const, [MANY, '10,000 buckets'] as const]) {
      const keys = Array.from({ length: count }, (_, index) => `user-${index}`);
      const ours = await headgate(leanReach(engine), keys);
      const theirs = async (): Promise<number> => {
        child.stdin.write(`${count} ${AT_ONCE} ${sized(ROUND_MS)}\n`);
        const { value, done } = await figures.next();
        if (done === true) throw new Error('zae-limiter ended');
        return Number(value);
      };
      const both = await compare(
        async () => perSecond({ keys, concurrency: AT_ONCE, roundMs: ROUND_MS }, ours),
        theirs,
      );
      yield { name: `acquire / zae-limiter ${RELEASE}, ${AT_ONCE} callers on ${where}`, unit: 'ops/s', ...both };
    }
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin.end();
      await once(child, 'exit');
    }
  }
}

type Installed = Disposable & ({ readonly python: string } | { readonly reason: string });

/** The release in the folder that `HEADGATE_ZAE_LIMITER` names, else one that is installed for this run, if PyPI answers. */
function installZae(): Installed {
  const given = process.env['HEADGATE_ZAE_LIMITER'];
  if (given !== undefined) {
    const python = join(given, RELEASE, 'bin', 'python');
    const found = existsSync(python) ? { python } : { reason: `${python} does not exist` };
    return { ...found, [Symbol.dispose]: () => {} };
  }
  const folder = mkdtempSync(join(tmpdir(), 'headgate-zae-'));
  const remove = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
  const python = join(folder, 'bin', 'python');
  const steps = [
    ['python3', '-m', 'venv', folder],
    [python, '-m', 'pip', 'install', '--quiet', `zae-limiter==${RELEASE}`],
  ] as const;
  for (const [command, ...args] of steps) {
    const { status, error } = spawnSync(command, args, { stdio: 'ignore', timeout: INSTALL_MS });
    if (status !== 0)
      return { reason: `${command} ${args.join(' ')}: ${error?.message ?? `status ${status}`}`, ...remove };
  }
  return { python, ...remove };
}

/** Without a stream, for the reason that `createTables` names. The layouts of both have the same keys and indexes. */
async function createZaeTable(client: DynamoDB): Promise<void> {
  const { StreamSpecification: _, ...definition } = tableDefinition(ZAE_TABLE);
  await client.createTable(definition);
}

function startZae(python: string, engine: Engine): ChildProcessByStdio<Writable, Readable, null> {
  const script = new URL('../bench/zae-limiter.py', import.meta.url).pathname;
  const { endpoint, region } = leanReach(engine);
  const env = { ...process.env, AWS_DEFAULT_REGION: region };
  return spawn(python, [script, ZAE_TABLE, endpoint, region], { env, stdio: ['pipe', 'pipe', 'inherit'] });
}
