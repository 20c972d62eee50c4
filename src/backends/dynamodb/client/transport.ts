import type {
  AttributeValue,
  BatchGetItemInput,
  BatchGetItemOutput,
  BatchWriteItemInput,
  BatchWriteItemOutput,
  CreateTableInput,
  CreateTableOutput,
  DeleteItemInput,
  DeleteItemOutput,
  DescribeTableInput,
  DescribeTableOutput,
  GetItemInput,
  GetItemOutput,
  PutItemInput,
  PutItemOutput,
  QueryInput,
  QueryOutput,
  ScanInput,
  ScanOutput,
  TransactWriteItemsInput,
  TransactWriteItemsOutput,
  UpdateItemInput,
  UpdateItemOutput,
  UpdateTimeToLiveInput,
  UpdateTimeToLiveOutput,
} from '@aws-sdk/client-dynamodb';
import type { EpochMs } from '../../../core/units.js';
import type { ClockNews } from './clock-offset.js';
import type { Deadline } from './deadline.js';

export type { AttributeValue };

/** A record as DynamoDB spells it. */
export type Item = Record<string, AttributeValue>;

/** The operations that Headgate uses, and nothing else. */
export interface Operations {
  readonly BatchGetItem: readonly [BatchGetItemInput, BatchGetItemOutput];
  readonly BatchWriteItem: readonly [BatchWriteItemInput, BatchWriteItemOutput];
  readonly CreateTable: readonly [CreateTableInput, CreateTableOutput];
  readonly DeleteItem: readonly [DeleteItemInput, DeleteItemOutput];
  readonly DescribeTable: readonly [DescribeTableInput, DescribeTableOutput];
  readonly GetItem: readonly [GetItemInput, GetItemOutput];
  readonly PutItem: readonly [PutItemInput, PutItemOutput];
  readonly Query: readonly [QueryInput, QueryOutput];
  readonly Scan: readonly [ScanInput, ScanOutput];
  readonly TransactWriteItems: readonly [TransactWriteItemsInput, TransactWriteItemsOutput];
  readonly UpdateItem: readonly [UpdateItemInput, UpdateItemOutput];
  readonly UpdateTimeToLive: readonly [UpdateTimeToLiveInput, UpdateTimeToLiveOutput];
}

export type Operation = keyof Operations;

/** One request, one answer; never sent twice, because not every write may be. Throws what `failureOf` can read. */
export interface Transport {
  /** Loads what it needs to send. Without that, the first request does, within its own deadline. */
  load?(): Promise<void>;
  send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline): Promise<Operations[Op][1]>;
  /** The store's time, by its answers: that of this machine where both agree within a second. null: not known yet. */
  storeTimeMs(): EpochMs | null;
  /** The last answer contradicted the time that is believed, and no second one has settled it. */
  isTimeInDoubt?(): boolean;
  /** The latest large correction of the time, or answer that was not believed: each is told once. */
  takeClockNews?(): ClockNews | null;
  close(): void;
}
