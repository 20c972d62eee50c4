import { count, exactly, flag, instant, listOf, mapOf, nullable, record, type Shape, text } from './shape.js';

/** The changes of a migration to a table. */
export const migrated = {
  from: count,
  to: count,
  raisesTo: nullable(count),
  migrations: listOf(
    record({
      id: text,
      title: text,
      found: count,
      written: count,
      removed: count,
      strict: count,
      left: count,
      problems: listOf(record({ record: text, reason: text })),
    }),
  ),
  indexes: listOf(record({ index: text, state: exactly('costly', 'missing'), advice: text })),
  settings: listOf(
    record({ setting: text, records: count, treatment: exactly('converted', 'dropped', 'refused'), effect: text }),
  ),
};

const stackChanges = listOf(
  record({
    action: text,
    logicalId: text,
    physicalId: nullable(text),
    type: text,
    replacement: nullable(exactly('yes', 'no', 'conditional')),
  }),
);
const stackAction = exactly('create', 'update', 'none');
const deployAction = exactly('create', 'update', 'none', 'adopt');
const uploads = listOf(record({ name: text, uploaded: flag, sha256: text }));
const stackItem = {
  stack: text,
  env: nullable(text),
  status: text,
  version: nullable(text),
  table: nullable(text),
  createdAt: nullable(instant),
  updatedAt: nullable(instant),
};

/** The JSON of the commands that need CloudFormation by docs/reference/cli-json.md. They are tested with the simulation. */
export const STACK_SHAPES: Readonly<Record<string, Shape>> = {
  delete: record({
    stack: text,
    dryRun: flag,
    deleted: flag,
    kept: listOf(record({ logicalId: text, physicalId: text })),
  }),
  deploy: record({
    stack: text,
    dryRun: flag,
    action: deployAction,
    status: nullable(text),
    changes: stackChanges,
    outputs: mapOf(text),
    functions: uploads,
    table: nullable(record({ name: text, prepared: flag })),
  }),
  list: record({ items: listOf(record(stackItem)), next: nullable(text) }),
  status: record({
    ...stackItem,
    region: text,
    statusReason: nullable(text),
    thisVersion: text,
    parameters: mapOf(text),
    outputs: mapOf(text),
    tableVersion: nullable(
      record({
        state: exactly('current', 'upgradable', 'older', 'newer', 'no-record', 'no-table'),
        schemaVersion: nullable(count),
      }),
    ),
    functions: listOf(
      record({
        name: text,
        state: nullable(text),
        update: nullable(text),
        reason: nullable(text),
        code: exactly('current', 'other', 'missing'),
      }),
    ),
    lastFailure: nullable(record({ logicalId: nullable(text), type: nullable(text), reason: text })),
  }),
  upgrade: record({
    stack: text,
    dryRun: flag,
    template: record({ action: stackAction, status: nullable(text), changes: stackChanges }),
    data: record(migrated),
    functions: uploads,
  }),
};
