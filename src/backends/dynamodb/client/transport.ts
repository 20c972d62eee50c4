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
import type { ClockNews } from './store-clock.js';
import type { Deadline } from '../../../machine-time.js';

export type { AttributeValue };

/** A record in DynamoDB's attribute format. */
export type Item = Record<string, AttributeValue>;

/** The operations that Headgate uses. */
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

/** Sends a request at most once, because not every write may be repeated. Throws what `failureOf` can classify. */
export interface Transport {
  /** Loads the packages that it needs. Otherwise the first request loads them, within its own deadline. */
  load?(): Promise<void>;
  send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline): Promise<Operations[Op][1]>;
  /** The store's time by its answers: this machine's time if both agree within a second. null: not known yet. */
  storeTimeMs(): EpochMs | null;
  /** The last answer contradicted the time in use, and no second answer has confirmed or refuted it. */
  isTimeInDoubt?(): boolean;
  /** The latest large correction of the time, or the latest answer that was ignored. Each is returned once. */
  takeClockNews?(): ClockNews | null;
  close(): void;
}
