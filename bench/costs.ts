import { readFileSync } from 'node:fs';
import { comparisonOf, interleave, type Round } from './interleave.js';
import { callAll, type Load } from './load.js';
import type { Contender } from './race.js';
import { sized } from './settings.js';
import type { Row } from './table.js';

/** One round of a contender: its speed, and the CPU of an operation on both sides. */
export interface Cost {
  readonly perSecond: number;
  readonly clientUs: number;
  readonly engineUs: number;
}

/** Of a row that measures speed. */
type Speed = Pick<Row, 'name' | 'goal'>;

/** Linux counts the CPU of a process in hundredths of a second. */
const TICK_US = 10_000;

/**
 * Measures the speed of two contenders and, in the same rounds, the CPU of one operation in this process and in the engine:
 * where both share the processors, neither explains the speed alone. `pid`: that of the engine, null if it is not known.
 */
export async function* costRows(
  { name, ...goal }: Speed,
  load: Load,
  [ours, theirs]: readonly [ours: Contender, theirs: Contender],
  pid: number | null,
): AsyncGenerator<Row> {
  const rounds = await interleave(
    async () => costOf(load, ours, pid),
    async () => costOf(load, theirs, pid),
  );
  const only = (field: keyof Cost): readonly Round[] =>
    rounds.map((round) => ({ ours: round.ours[field], theirs: round.theirs[field] }));
  yield { name, unit: 'ops/s', ...goal, ...comparisonOf(only('perSecond')) };
  yield { name: `CPU of the client, ${name}`, unit: 'us', ...comparisonOf(only('clientUs')) };
  if (hasCpuOf(pid)) yield { name: `CPU of the engine, ${name}`, unit: 'us', ...comparisonOf(only('engineUs')) };
}

export async function costOf(load: Load, contender: Contender, pid: number | null): Promise<Cost> {
  const startMs = performance.now();
  const [client, engineUs] = [process.cpuUsage(), cpuUsOf(pid)];
  const operations = await callAll(load, contender, () => performance.now() - startMs < sized(load.roundMs));
  const { user, system } = process.cpuUsage(client);
  return {
    perSecond: (operations / (performance.now() - startMs)) * 1_000,
    clientUs: (user + system) / operations,
    engineUs: (cpuUsOf(pid) - engineUs) / operations,
  };
}

function hasCpuOf(pid: number | null): pid is number {
  return pid !== null && process.platform === 'linux';
}

/** The CPU that a process has used, with all of its threads. */
function cpuUsOf(pid: number | null): number {
  if (!hasCpuOf(pid)) return Number.NaN;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name of the program is in parentheses and may contain blanks. The fields behind it begin with the third.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}
