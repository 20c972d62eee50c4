import { InfrastructureError } from '../../../core/errors.js';
import { buildSequenceKey, keyItem, type RecordKey } from '../table/keys.js';
import { number, readKey } from '../table/attributes.js';
import { deadlineIn } from '../../../machine-time.js';
import { errorOf } from '../client/failures.js';
import { readItems } from '../client/batches.js';
import { REQUEST_MS, sendRepeatable, type Table } from '../client/requests.js';
import { ABSENT, type Action, deleteAction, putAction, type Seen } from '../stores/actions.js';
import type { Item } from '../client/transport.js';
import type { Phase } from './checkpoint.js';
import { FIRST_SEQUENCE } from './legacy/legacy-records.js';
import { readOldRecord } from '../schema/old-record.js';
import { buildConversion, buildShardConversion } from './convert/build-conversions.js';
import type { Conversion, ConversionContext, ConversionPlan } from './convert/conversion.js';
import { withRetries } from '../schema/retry.js';
import { NOTHING, type MigrationProblem, type Tally } from './tally.js';
import { Unmappable } from './unmappable.js';
import { writeConversions } from './convert/write-conversions.js';

export interface PhaseJob {
  readonly table: Table;
  /** `look`: writes nothing. */
  readonly phase: Phase | 'look';
  readonly context: ConversionContext;
  /** The config version of this run, by namespace. */
  readonly sequences: Map<string, number>;
  readonly signal?: AbortSignal | undefined;
}

interface Planned {
  readonly conversion: Conversion;
  /** The item at the new record's key. */
  readonly target: Item | undefined;
  readonly plan: ConversionPlan;
}

interface PlannedConversion extends Planned {
  readonly actions: readonly Action[];
}

/** How often a wrong copy is written again. */
const MAX_COPIES = 3;

/** Runs one phase on some conversions. A record that changes meanwhile is skipped and counted as changed. */
export async function runPhase(job: PhaseJob, conversions: readonly Conversion[]): Promise<Tally> {
  const { planned, problems, left } = await planConversions(job, conversions);
  const seen = conversions.reduce((sum, { olds }) => sum + olds.length, 0);
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

async function planConversions(
  { table, phase, context, signal }: PhaseJob,
  conversions: readonly Conversion[],
): Promise<{ planned: Planned[]; problems: MigrationProblem[]; left: number }> {
  const keys = conversions.filter(({ mode }) => typeof mode === 'string').map(({ target }) => target);
  if (phase === 'look') keys.push(...conversions.flatMap(({ rivals = [] }) => rivals));
  const found = await withRetries(async () => readItems(table, keys, deadlineIn(REQUEST_MS)), signal);
  const there = new Map(found.flatMap((item) => (item === undefined ? [] : [[textOf(readKey(item)), item] as const])));
  const planned: Planned[] = [];
  const problems: MigrationProblem[] = [];
  let left = 0;
  for (const conversion of conversions) {
    const target = typeof conversion.mode === 'string' ? there.get(textOf(conversion.target)) : conversion.mode;
    try {
      if (typeof conversion.mode !== 'string') planned.push({ conversion, target, plan: conversion.plan(target) });
      else if (phase === 'look') {
        const rival = conversion.rivals?.map((key) => there.get(textOf(key))).find((item) => item !== undefined);
        const ahead = foresee(context, target) ?? foreseeRival(context, rival);
        planned.push({ conversion, target, plan: conversion.plan(ahead) });
      } else {
        refuseOldTarget(target);
        planned.push({ conversion, target, plan: conversion.plan(target) });
      }
    } catch (error) {
      if (!(error instanceof Unmappable)) throw error;
      left += conversion.olds.length;
      problems.push({ record: textOf(readKey(conversion.olds[0] ?? {})), reason: error.message });
    }
  }
  return { planned, problems, left };
}

/** Throws for a target that could not be converted: its content must not be read as a record of this version. */
function refuseOldTarget(target: Item | undefined): undefined {
  if (target === undefined || readOldRecord(target) === null) return undefined;
  throw new Unmappable('a record of another old layout has the key of the new record');
}

/** The converted form of an old record. Throws `Unmappable` if it has none. */
function foresee(context: ConversionContext, item: Item | undefined): Item | undefined {
  const record = item === undefined ? null : readOldRecord(item);
  if (item === undefined || record === null) return item;
  try {
    const { key } = record;
    const conversion =
      key.kind === 'shard'
        ? buildShardConversion(context, record, new Map([[key.shard, item]]))
        : buildConversion(context, [record]);
    const plan = conversion?.plan(undefined);
    return plan?.kind === 'copy' || plan?.kind === 'merge' ? plan.item : undefined;
  } catch (error) {
    if (!(error instanceof Unmappable)) throw error;
    return refuseOldTarget(item);
  }
}

/** A rival that cannot be converted stays under its own key and does not conflict. */
function foreseeRival(context: ConversionContext, rival: Item | undefined): Item | undefined {
  try {
    return foresee(context, rival);
  } catch (error) {
    if (error instanceof Unmappable) return undefined;
    throw error;
  }
}

/** Writes copies next to the old records. A record that another client wrote is left for the remove phase. */
async function copy(job: PhaseJob, planned: readonly Planned[]): Promise<Pick<Tally, 'written' | 'changed'>> {
  const copies = planned.filter(isCopy);
  await takeNumbers(job, copies);
  const writes = copies.map((one) => ({ ...one, actions: putOf(job, one) }));
  const refused = await writeConversions(job.table, writes, job.signal);
  return { written: planned.filter(({ plan }) => plan.kind !== 'drop').length, changed: refused.length };
}

/** Every copy must match the current old records. A copy that does not is written again. */
async function verify(job: PhaseJob, planned: readonly Planned[], attempt: number): Promise<void> {
  const wrong = planned.filter(isCopy);
  if (wrong.length === 0) return;
  if (attempt > MAX_COPIES) {
    const where = textOf(wrong[0]?.conversion.target ?? { PK: '', SK: '' });
    throw stillWritten(`the copy ${where} keeps changing`);
  }
  await copy(job, wrong);
  const again = await planConversions(
    job,
    wrong.map(({ conversion }) => conversion),
  );
  await verify(job, again.planned, attempt + 1);
}

/**
 * Writes the new record and removes the old ones in one transaction. Its conditions compare all attributes that were
 * read.
 */
async function remove(job: PhaseJob, planned: readonly Planned[]): Promise<Pick<Tally, 'changed' | 'strict'>> {
  await takeNumbers(job, planned.filter(isWritten));
  const writes = planned.map((one): PlannedConversion => ({ ...one, actions: removalOf(job, one) }));
  const refused = new Set(await writeConversions(job.table, writes, job.signal));
  const made = writes.filter((write) => !refused.has(write));
  return { changed: refused.size, strict: made.filter(isStrict).length };
}

function isWritten({ plan }: Planned): boolean {
  return plan.kind === 'copy' || plan.kind === 'merge';
}

function isCopy({ conversion, plan }: Planned): boolean {
  return conversion.mode === 'copy' && plan.kind === 'copy';
}

function isStrict({ plan }: Planned): boolean {
  return plan.kind === 'merge' && plan.strict;
}

function putOf({ table, sequences }: PhaseJob, { conversion, plan, target }: Planned): readonly Action[] {
  if (plan.kind !== 'copy' && plan.kind !== 'merge') return [];
  const v = sequences.get(conversion.sequenceOf ?? '');
  const item = v === undefined || conversion.sequenceOf === undefined ? plan.item : { ...plan.item, v: number(v) };
  return [putAction(table, item, target === undefined ? ABSENT : seenOf(target))];
}

function removalOf(job: PhaseJob, planned: Planned): readonly Action[] {
  const { table } = job;
  const { olds, mode } = planned.conversion;
  const replaced = planned.plan.kind === 'drop' ? null : mode;
  const removed = olds.filter((old) => old !== replaced);
  return [...putOf(job, planned), ...removed.map((old) => deleteAction(table, readKey(old), seenOf(old)))];
}

const VOLATILE = /^(?:rf|w|v|version|config_version|tokens_milli|last_refill_ms|total_consumed_milli|b_.+_(?:tk|tc))$/;
const INDEX_KEY = /^(?:[PS]K|GSI\d[PS]K)$/;
/** DynamoDB limits a condition to 300 operators and 4 KB. */
const MAX_COMPARED = 150;

/**
 * The attributes that a condition compares: all that were read, or the ones that change with use first if there are too
 * many.
 */
function seenOf(item: Item): Seen {
  const names = Object.keys(item).filter((name) => !INDEX_KEY.test(name));
  const compared = names
    .toSorted((a, b) => Number(VOLATILE.test(b)) - Number(VOLATILE.test(a)) || (a < b ? -1 : 1))
    .slice(0, MAX_COMPARED);
  if (compared.length === 0) return { PK: item['PK'] };
  return Object.fromEntries(compared.map((name) => [name, item[name]]));
}

/**
 * Takes the next number of each namespace's config sequence, once per run. Limits that an operator sets later are newer
 * than the converted ones. Limits that an old client set on a table in use are newer than the ones they replace.
 */
async function takeNumbers({ table, sequences, signal }: PhaseJob, writes: readonly Planned[]): Promise<void> {
  for (const { conversion } of writes) {
    const ns = conversion.sequenceOf;
    if (ns === undefined || sequences.has(ns)) continue;
    sequences.set(ns, await withRetries(async () => takeNumber(table, ns), signal));
  }
}

/** A repeated request takes two numbers; the first one is never used. */
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

/** Nothing is lost: the next run converts the remaining records. */
export function stillWritten(what: string): InfrastructureError {
  const message = `Old clients still write to the table: ${what}. Stop them, then run headgate migrate again`;
  return new InfrastructureError('infrastructure.migration', message, { retryable: true });
}

function textOf({ PK, SK }: RecordKey): string {
  return `${PK} ${SK}`;
}
