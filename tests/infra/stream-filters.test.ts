import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import { archivedRecordOf } from '../../src/backends/dynamodb/stream/archive/archive.js';
import { decodeChange } from '../../src/backends/dynamodb/stream/decode.js';
import { LIMITS } from '../support/dynamodb/permissions.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';
import { matchesFilter } from './filter-pattern.js';
import { openStream, readRecords, workOff } from '../support/stream/world.js';

interface Record {
  readonly eventName: string;
  readonly dynamodb: { readonly Keys: { readonly PK: { readonly S: string }; readonly SK: { readonly S: string } } };
}

/** The format of the event source mapping: a list of texts. */
const { StreamSource } = buildTemplate().Resources;
const CRITERIA = StreamSource!.Properties['FilterCriteria'] as unknown as {
  readonly Filters: readonly { readonly Pattern: string }[];
};
const FILTERS = CRITERIA.Filters.map(({ Pattern }) => JSON.parse(Pattern) as unknown);

const passes = (record: unknown): boolean => FILTERS.some((filter) => matchesFilter(filter, record));

/** Records that the code never uses, whatever they contain. */
function idleFilters(filters: readonly unknown[], records: readonly Record[]): unknown[] {
  return filters.filter((filter) => !records.some((record) => matchesFilter(filter, record)));
}

/** Whether `src/backends/dynamodb/stream` uses the record. */
function isUsed(record: Record): boolean {
  const change = decodeChange(record, 'label');
  return change.kind === 'bucket' || (change.kind === 'audit' && archivedRecordOf(change) !== null);
}

/** The event and the kind of record: `MODIFY #STATE`. */
function kindOf({ eventName, dynamodb: { Keys } }: Record): string {
  return `${eventName} ${/^#[A-Z]+/.exec(Keys.SK.S)?.[0] ?? Keys.SK.S}`;
}

function recorded(name: string): readonly Record[] {
  const place = new URL(`../fixtures/stream/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(place, 'utf8')) as { readonly Records: readonly Record[] }).Records;
}

/** Purges delete audit records: the filter passes them, and the function finds no expiry. */
const LET_THROUGH = ['INSERT #STATE', 'MODIFY #STATE', 'REMOVE #STATE', 'REMOVE #AUDIT'];

/** DynamoDB Local and dynoxide do not expire items. */
test.each([
  ['aws', 3],
  ['extenddb', 3],
  ['dynoxide', 2],
  ['dynamodb-local', 2],
])('the filters pass the used records of an event of %s and no others, and every filter matches one', (name, used) => {
  const records = recorded(name);
  expect(records.filter(isUsed).length).toBe(used);
  for (const record of records) {
    if (isUsed(record)) expect(passes(record), kindOf(record)).toBe(true);
    expect(passes(record), kindOf(record)).toBe(LET_THROUGH.includes(kindOf(record)));
  }
  expect(idleFilters(FILTERS, records)).toEqual([]);
});

test('a filter that never matches is detected', () => {
  const wrong = [
    { eventName: ['DELETE'] },
    { dynamodb: { Keys: { SK: { S: ['#AUDIT#'] } } } },
    { dynamodb: { Keys: { SK: [{ prefix: '#STATE' }] } } },
  ];
  expect(idleFilters([...FILTERS, ...wrong], recorded('aws'))).toEqual(wrong);
});

describe.skipIf(ENGINE.missing)(`records of every kind that the code writes${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test('the filters pass a record exactly if src/backends/dynamodb/stream uses it', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const { namespace } = space;
    await limiter.entities.create({ id: 'proj-1' });
    await limiter.manifest.apply({ namespace, system: { limits: ['rpd:7/day'] } });
    const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpd: 1 } };
    for (const _ of [1, 2]) await limiter.acquire(ask);
    await workOff(world);
    await limiter.namespaces.delete(namespace);
    await limiter.namespaces.purge(space.ns);
    const stream = await openStream(world);
    const records = (await readRecords(stream)) as Record[];
    stream.close?.();
    const kinds = new Set(records.map(kindOf));
    for (const kind of ['META', 'CONFIG', 'SEQ', 'USAGE', 'MANAGED', 'VERSION', 'NAMESPACE', 'NSID', 'SHARD']) {
      expect(kinds).toContain(`INSERT #${kind}`);
    }
    for (const kind of LET_THROUGH) expect(kinds).toContain(kind);
    for (const record of records) expect(passes(record), kindOf(record)).toBe(LET_THROUGH.includes(kindOf(record)));
    expect(records.filter(isUsed).every(passes)).toBe(true);
  });
});
