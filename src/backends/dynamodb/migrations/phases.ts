import { InfrastructureError } from '../../../core/errors.js';
import { keyItem, number, readKey } from '../table/attributes.js';
import { deadlineIn } from '../client/deadline.js';
import { errorOf } from '../client/failures.js';
import { buildSequenceKey, type RecordKey } from '../table/keys.js';
import { readItems, sendRepeatable, type Table } from '../client/requests.js';
import { ABSENT, type Action, deleteAction, putAction, type Seen } from '../stores/actions.js';
import type { Item } from '../client/transport.js';
import type { Phase } from './checkpoint.js';
import { FIRST_SEQUENCE } from './legacy/legacy-records.js';
import { readOldRecord } from './legacy/old-record.js';
import { buildShardConversion, buildConversion, type ConversionContext } from './convert/build-conversions.js';
import { withRetries, REQUEST_MS } from './retry.js';
import { NOTHING, type Problem, type Tally } from './tally.js';
import type { ConversionPlan, Conversion } from './convert/conversion.js';
import { Unmappable } from './unmappable.js';
import { writeConversions } from './convert/write-conversions.js';

export interface PhaseJob {
  readonly table: Table;
  /** `look`: nothing is written. */
  readonly phase: Phase | 'look';
  readonly around: ConversionContext;
  /** Numbers that the configs of this run have, by namespace. */
  readonly sequences: Map<string, number>;
  readonly signal?: AbortSignal | undefined;
}

interface Planned {
  readonly unit: Conversion;
  /** What stands where the new record goes. */
  readonly target: Item | undefined;
  readonly plan: ConversionPlan;
}

interface PlannedWrite extends Planned {
  readonly actions: readonly Action[];
}

/** How often a copy is made again that is not what it should be. */
const MAX_COPIES = 3;

/** Does the work of one phase on some units. What somebody writes meanwhile is left, and counted as changed. */
export async function treatUnits(job: PhaseJob, units: readonly Conversion[]): Promise<Tally> {
  const { planned, problems, left } = await planUnits(job, units);
  const seen = units.reduce((sum, { olds }) => sum + olds.length, 0);
  const known = { ...NOTHING, seen, left, problems };
  switch (job.phase) {
    case 'look':
      return { ...known, strict: planned.filter(isStrict).length };
    case 'copy':
      return { ...known, ...(await copy(job, planned)) };
    case 'verify':
      await verify(job, planned, 1);
      return known;
    case 'remove':
      return { ...known, ...(await remove(job, planned)) };
  }
}

async function planUnits(
  { table, phase, around, signal }: PhaseJob,
  units: readonly Conversion[],
): Promise<{ planned: Planned[]; problems: Problem[]; left: number }> {
  const keys = units.filter(({ mode }) => typeof mode === 'string').map(({ target }) => target);
  if (phase === 'look') keys.push(...units.flatMap(({ rivals = [] }) => rivals));
  const found = await withRetries(async () => readItems(table, keys, deadlineIn(REQUEST_MS)), signal);
  const there = new Map(found.flatMap((item) => (item === undefined ? [] : [[textOf(readKey(item)), item] as const])));
  const planned: Planned[] = [];
  const problems: Problem[] = [];
  let left = 0;
  for (const unit of units) {
    const target = typeof unit.mode === 'string' ? there.get(textOf(unit.target)) : unit.mode;
    try {
      if (typeof unit.mode !== 'string') planned.push({ unit, target, plan: unit.plan(target) });
      else if (phase === 'look') {
        const rival = unit.rivals?.map((key) => there.get(textOf(key))).find((item) => item !== undefined);
        const ahead = foresee(around, target) ?? foreseeRival(around, rival);
        planned.push({ unit, target, plan: unit.plan(ahead) });
      } else {
        refuseOldTarget(target);
        planned.push({ unit, target, plan: unit.plan(target) });
      }
    } catch (error) {
      if (!(error instanceof Unmappable)) throw error;
      left += unit.olds.length;
      problems.push({ record: textOf(readKey(unit.olds[0] ?? {})), reason: error.message });
    }
  }
  return { planned, problems, left };
}

/** One that could not be moved itself: what it holds must not be taken for this version's. */
function refuseOldTarget(target: Item | undefined): undefined {
  if (target === undefined || readOldRecord(target) === null) return undefined;
  throw new Unmappable('a record of another old layout stands where it would go');
}

/** What an old record will be when it has been moved. Throws `Unmappable` if that cannot be. */
function foresee(around: ConversionContext, item: Item | undefined): Item | undefined {
  const record = item === undefined ? null : readOldRecord(item);
  if (item === undefined || record === null) return item;
  try {
    const { key } = record;
    const unit =
      key.kind === 'shard'
        ? buildShardConversion(around, record, new Map([[key.shard, item]]))
        : buildConversion(around, [record]);
    const plan = unit?.plan(undefined);
    return plan?.kind === 'copy' || plan?.kind === 'merge' ? plan.item : undefined;
  } catch (error) {
    if (!(error instanceof Unmappable)) throw error;
    return refuseOldTarget(item);
  }
}

/** One that cannot be moved itself stays where it is, and out of the way. */
function foreseeRival(around: ConversionContext, rival: Item | undefined): Item | undefined {
  try {
    return foresee(around, rival);
  } catch (error) {
    if (error instanceof Unmappable) return undefined;
    throw error;
  }
}

/** Copies stand beside the old records. What somebody else has written is left for the end. */
async function copy(job: PhaseJob, planned: readonly Planned[]): Promise<Pick<Tally, 'written' | 'changed'>> {
  const copies = planned.filter(isCopy);
  await takeNumbers(job, copies);
  const writes = copies.map((one) => ({ ...one, actions: putOf(job, one) }));
  const refused = await writeConversions(job.table, writes, job.signal);
  return { written: planned.filter(({ plan }) => plan.kind !== 'drop').length, changed: refused.length };
}

/** Every copy must be what the old records say now; one that is not is made again. */
async function verify(job: PhaseJob, planned: readonly Planned[], attempt: number): Promise<void> {
  const wrong = planned.filter(isCopy);
  if (wrong.length === 0) return;
  if (attempt > MAX_COPIES) {
    const where = textOf(wrong[0]?.unit.target ?? { PK: '', SK: '' });
    throw stillWritten(`the copy ${where} does not stay what it should be`);
  }
  await copy(job, wrong);
  const again = await planUnits(
    job,
    wrong.map(({ unit }) => unit),
  );
  await verify(job, again.planned, attempt + 1);
}

/** The new record and the removal of the old ones are one transaction, whose conditions name all that was read. */
async function remove(job: PhaseJob, planned: readonly Planned[]): Promise<Pick<Tally, 'changed' | 'strict'>> {
  await takeNumbers(job, planned.filter(isWritten));
  const writes = planned.map((one): PlannedWrite => ({ ...one, actions: removalOf(job, one) }));
  const refused = new Set(await writeConversions(job.table, writes, job.signal));
  const made = writes.filter((write) => !refused.has(write));
  return { changed: refused.size, strict: made.filter(isStrict).length };
}

function isWritten({ plan }: Planned): boolean {
  return plan.kind === 'copy' || plan.kind === 'merge';
}

function isCopy({ unit, plan }: Planned): boolean {
  return unit.mode === 'copy' && plan.kind === 'copy';
}

function isStrict({ plan }: Planned): boolean {
  return plan.kind === 'merge' && plan.strict;
}

function putOf({ table, sequences }: PhaseJob, { unit, plan, target }: Planned): readonly Action[] {
  if (plan.kind !== 'copy' && plan.kind !== 'merge') return [];
  const v = sequences.get(unit.sequenceOf ?? '');
  const item = v === undefined || unit.sequenceOf === undefined ? plan.item : { ...plan.item, v: number(v) };
  return [putAction(table, item, target === undefined ? ABSENT : seenOf(target))];
}

function removalOf(job: PhaseJob, planned: Planned): readonly Action[] {
  const { table } = job;
  const { olds, mode } = planned.unit;
  const replaced = planned.plan.kind === 'drop' ? null : mode;
  const gone = olds.filter((old) => old !== replaced);
  return [...putOf(job, planned), ...gone.map((old) => deleteAction(table, readKey(old), seenOf(old)))];
}

const VOLATILE = /^(?:rf|w|v|version|config_version|tokens_milli|last_refill_ms|total_consumed_milli|b_.+_(?:tk|tc))$/;
const INDEX_KEY = /^(?:[PS]K|GSI\d[PS]K)$/;
/** A condition ends at 300 operators and 4 KB. */
const MAX_COMPARED = 150;

/** All that was read of a record; of one with very many attributes, those first that move when it is used. */
function seenOf(item: Item): Seen {
  const names = Object.keys(item).filter((name) => !INDEX_KEY.test(name));
  const compared = names
    .toSorted((a, b) => Number(VOLATILE.test(b)) - Number(VOLATILE.test(a)) || (a < b ? -1 : 1))
    .slice(0, MAX_COMPARED);
  if (compared.length === 0) return { PK: item['PK'] };
  return Object.fromEntries(compared.map((name) => [name, item[name]]));
}

/**
 * The next number of each namespace's config sequence, once for all configs of a run: limits that an operator sets later
 * are newer than those that were moved, and those that an old client set on a table in use are newer than what they replace.
 */
async function takeNumbers({ table, sequences, signal }: PhaseJob, writes: readonly Planned[]): Promise<void> {
  for (const { unit } of writes) {
    const ns = unit.sequenceOf;
    if (ns === undefined || sequences.has(ns)) continue;
    sequences.set(ns, await withRetries(async () => takeNumber(table, ns), signal));
  }
}

/** Sent twice it takes two numbers, of which the first is never used. */
async function takeNumber(table: Table, ns: string): Promise<number> {
  const input = {
    TableName: table.name,
    Key: keyItem(buildSequenceKey(ns)),
    UpdateExpression: 'ADD #v :one',
    ExpressionAttributeNames: { '#v': 'v' },
    ExpressionAttributeValues: { ':one': number(1) },
    ReturnValues: 'ALL_NEW' as const,
  };
  const answer = await sendRepeatable(table, 'UpdateItem', input, deadlineIn(REQUEST_MS));
  if (!answer.ok) throw errorOf(answer.failure, 'UpdateItem');
  return Number(answer.output.Attributes?.['v']?.N ?? FIRST_SEQUENCE);
}

/** Nothing was lost: what is left is moved by the next run. */
export function stillWritten(what: string): InfrastructureError {
  const message = `Old clients still write to the table: ${what}. Stop them, then run headgate migrate again`;
  return new InfrastructureError('infrastructure.migration', message, { retryable: true });
}

function textOf({ PK, SK }: RecordKey): string {
  return `${PK} ${SK}`;
}
