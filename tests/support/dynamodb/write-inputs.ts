/** The requests that the writes of shards become, for tests that send them to an engine. */
import type {
  PutItemInput,
  TransactWriteItem,
  TransactWriteItemsInput,
  UpdateItemInput,
} from '@aws-sdk/client-dynamodb';
import { buildCreate as create } from '../../../src/backends/dynamodb/bucket/writes/create.js';
import type { RecordWrite, Update } from '../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { buildReset as reset } from '../../../src/backends/dynamodb/bucket/writes/write-reset.js';
import {
  buildSettlement as settlement,
  buildSettlementOfAll as settlementOfAll,
} from '../../../src/backends/dynamodb/bucket/writes/write-settlement.js';
import { buildShardWrite as shardWrite } from '../../../src/backends/dynamodb/bucket/shard-write.js';
import { buildMerge as merge, buildSplit as split } from '../../../src/backends/dynamodb/bucket/writes/write-split.js';
import { buildHeal as heal, buildUnmark as unmark } from '../../../src/backends/dynamodb/bucket/writes/write-sweep.js';
import {
  renderAction,
  renderCreate,
  renderUpdate,
} from '../../../src/backends/dynamodb/expressions/dynamodb-executor.js';

interface Target {
  readonly tableName: string;
  readonly ns: string;
}

type Rest<Build> = Build extends (ns: string, ...rest: infer Arguments) => unknown ? Arguments : never;

const one =
  <Build extends (ns: string, ...rest: never[]) => Update>(build: Build) =>
  ({ tableName, ns }: Target, ...rest: Rest<Build>): UpdateItemInput =>
    renderUpdate(tableName, build(ns, ...rest));

const several =
  <Build extends (ns: string, ...rest: never[]) => readonly RecordWrite[]>(build: Build) =>
  ({ tableName, ns }: Target, ...rest: Rest<Build>): TransactWriteItemsInput => ({
    TransactItems: build(ns, ...rest).map((write) => renderAction(tableName, write)),
  });

export const buildShardWrite = one(shardWrite);
export const buildSettlement = one(settlement);
export const buildHeal = one(heal);
export const buildUnmark = one(unmark);
export const buildSettlementOfAll = several(settlementOfAll);
export const buildSplit = several(split);
export const buildMerge = several(merge);

export function buildCreate({ tableName, ns }: Target, ...rest: Rest<typeof create>): PutItemInput {
  return renderCreate(tableName, create(ns, ...rest));
}

/** As one action of a transaction. */
export function buildReset({ tableName, ns }: Target, ...rest: Rest<typeof reset>): TransactWriteItem {
  return renderAction(tableName, reset(ns, ...rest));
}
