import { InfrastructureError } from '../../../core/errors.js';
import { keyItem, number, readKey } from '../attributes.js';
import { deadlineIn } from '../deadline.js';
import { errorOf } from '../failures.js';
import { buildSequenceKey, type RecordKey } from '../keys.js';
import { readItems, sendRepeatable, type Table } from '../requests.js';
import { ABSENT, type Action, deleteAction, putAction, type Seen } from '../stores/actions.js';
import type { Item } from '../transport.js';
import type { Phase } from './checkpoint.js';
import { FIRST_SEQUENCE } from './legacy-records.js';
import { readOldRecord } from './old-record.js';
import { patiently, REQUEST_MS } from './patience.js';
import { NOTHING, type Problem, type Tally } from './tally.js';
import type { Plan, Unit } from './unit.js';
import { Unmappable } from './unmappable.js';
import { writeUnits } from './write-units.js';

export interface PhaseJob {
  readonly table: Table;
  /** `look`: nothing is written. */
  readonly phase: Phase | 'look';
  /** Namespaces whose config sequence has begun. */
  readonly sequences: Set<string>;
  readonly signal?: AbortSignal | undefined;
}

interface Planned {
  readonly unit: Unit;
  /** What stands where the new record goes. */
  readonly target: Item | undefined;
  readonly plan: Plan;
}

interface PlannedWrite extends Planned {
  readonly actions: readonly Action[];
}

/** How often a copy is made again that is not what it should be. */
const MOST_COPIES = 3;

/** Does the work of one phase on some units. What somebody writes meanwhile is left, and counted as changed. */
export async function treatUnits(job: PhaseJob, units: readonly Unit[]): Promise<Tally> {
  const { planned, problems, left } = await planUnits(job, units);
  const seen = units.reduce((sum, { olds }) => sum + olds.length, 0);
  const known = { ...NOTHING, seen, left, problems };
  switch (job.phase) {
    case 'look':
      return { ...known, strict: planned.filter(isStrict).length };
    case 'copy':
      return { ...known, ...(await copy(job, planned)) };
    case 'verify':
      return { ...known, ...(await verify(job, planned, 1)) };
    case 'remove':
      return { ...known, ...(await remove(job, planned)) };
  }
}

async function planUnits(
  { table, signal }: PhaseJob,
  units: readonly Unit[],
): Promise<{ planned: Planned[]; problems: Problem[]; left: number }> {
  const keys = units.filter(({ mode }) => typeof mode === 'string').map(({ target }) => target);
  const found = await patiently(async () => readItems(table, keys, deadlineIn(REQUEST_MS)), signal);
  const there = new Map(found.flatMap((item) => (item === undefined ? [] : [[textOf(readKey(item)), item] as const])));
  const planned: Planned[] = [];
  const problems: Problem[] = [];
  let left = 0;
  for (const unit of units) {
    const target = typeof unit.mode === 'string' ? there.get(textOf(unit.target)) : unit.mode;
    try {
      if (typeof unit.mode === 'string') refuseOldTarget(target);
      planned.push({ unit, target, plan: unit.plan(target) });
    } catch (error) {
      if (!(error instanceof Unmappable)) throw error;
      left += unit.olds.length;
      problems.push({ record: textOf(readKey(unit.olds[0] ?? {})), reason: error.message });
    }
  }
  return { planned, problems, left };
}

/** One that could not be moved itself: what it holds must not be taken for this version's. */
function refuseOldTarget(target: Item | undefined): void {
  if (target === undefined || readOldRecord(target) === null) return;
  throw new Unmappable('a record of another old layout stands where it would go');
}

/** Copies stand beside the old records. What somebody else has written is left for the end. */
async function copy(job: PhaseJob, planned: readonly Planned[]): Promise<Pick<Tally, 'written' | 'changed'>> {
  const writes = planned.filter(isCopy).map((one) => ({ ...one, actions: putOf(job.table, one) }));
  await beginSequences(job, writes);
  const refused = await writeUnits(job.table, writes, job.signal);
  return { written: writes.length - refused.length, changed: refused.length };
}

/** Every copy must be what the old records say now; one that is not is made again. */
async function verify(job: PhaseJob, planned: readonly Planned[], attempt: number): Promise<Pick<Tally, 'written'>> {
  const wrong = planned.filter(isCopy);
  if (wrong.length === 0) return { written: 0 };
  if (attempt > MOST_COPIES) {
    const where = textOf(wrong[0]?.unit.target ?? { PK: '', SK: '' });
    throw stillWritten(`the copy ${where} does not stay what it should be`);
  }
  const { written } = await copy(job, wrong);
  const again = await planUnits(
    job,
    wrong.map(({ unit }) => unit),
  );
  const rest = await verify(job, again.planned, attempt + 1);
  return { written: written + rest.written };
}

/** The new record and the removal of the old ones are one transaction, whose conditions name all that was read. */
async function remove(
  job: PhaseJob,
  planned: readonly Planned[],
): Promise<Pick<Tally, 'written' | 'changed' | 'strict'>> {
  const writes = planned.map((one): PlannedWrite => ({ ...one, actions: removalOf(job.table, one) }));
  await beginSequences(job, writes);
  const refused = new Set(await writeUnits(job.table, writes, job.signal));
  const made = writes.filter((write) => !refused.has(write));
  return {
    written: made.filter(({ plan }) => plan.kind === 'copy' || plan.kind === 'merge').length,
    changed: refused.size,
    strict: made.filter(isStrict).length,
  };
}

function isCopy({ unit, plan }: Planned): boolean {
  return unit.mode === 'copy' && plan.kind === 'copy';
}

function isStrict({ plan }: Planned): boolean {
  return plan.kind === 'merge' && plan.strict;
}

function putOf(table: Table, { plan, target }: Planned): readonly Action[] {
  if (plan.kind !== 'copy' && plan.kind !== 'merge') return [];
  return [putAction(table, plan.item, target === undefined ? ABSENT : seenOf(target))];
}

function removalOf(table: Table, planned: Planned): readonly Action[] {
  const { olds, mode } = planned.unit;
  const replaced = planned.plan.kind === 'drop' ? null : mode;
  const gone = olds.filter((old) => old !== replaced);
  return [...putOf(table, planned), ...gone.map((old) => deleteAction(table, readKey(old), seenOf(old)))];
}

const VOLATILE = /^(?:rf|w|v|version|config_version|tokens_milli|last_refill_ms|total_consumed_milli|b_.+_(?:tk|tc))$/;
const INDEX_KEY = /^(?:[PS]K|GSI\d[PS]K)$/;
/** A condition ends at 300 operators and 4 KB. */
const MOST_COMPARED = 150;

/** All that was read of a record; of one with very many attributes, those first that move when it is used. */
function seenOf(item: Item): Seen {
  const names = Object.keys(item).filter((name) => !INDEX_KEY.test(name));
  const compared = names
    .toSorted((a, b) => Number(VOLATILE.test(b)) - Number(VOLATILE.test(a)) || (a < b ? -1 : 1))
    .slice(0, MOST_COMPARED);
  if (compared.length === 0) return { PK: item['PK'] };
  return Object.fromEntries(compared.map((name) => [name, item[name]]));
}

/** Before the first config of a namespace: the next one that an operator sets is newer than those that were moved. */
async function beginSequences({ table, sequences, signal }: PhaseJob, writes: readonly Planned[]): Promise<void> {
  for (const { unit } of writes) {
    const ns = unit.sequenceOf;
    if (ns === undefined || sequences.has(ns)) continue;
    const input = {
      TableName: table.name,
      Item: { ...keyItem(buildSequenceKey(ns)), v: number(FIRST_SEQUENCE) },
      ConditionExpression: 'attribute_not_exists(PK)',
    };
    const answer = await patiently(async () => sendRepeatable(table, 'PutItem', input, deadlineIn(REQUEST_MS)), signal);
    if (!answer.ok && answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'PutItem');
    sequences.add(ns);
  }
}

/** Nothing was lost: what is left is moved by the next run. */
export function stillWritten(what: string): InfrastructureError {
  const message = `Old clients still write to the table: ${what}. Stop them, then run headgate migrate again`;
  return new InfrastructureError('infrastructure.migration', message, { retryable: true });
}

function textOf({ PK, SK }: RecordKey): string {
  return `${PK} ${SK}`;
}
