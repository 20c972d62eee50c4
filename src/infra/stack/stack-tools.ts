import type { MigrateOptions, MigrationReport } from '../../backends/dynamodb/migrations/run.js';
import type { TableReadiness, TableVersion } from '../../backends/dynamodb/schema/prepare-table.js';
import type { TableFacts } from './table/table-facts.js';

/** The ports that the operations on a stack use. */
export interface StackTools {
  readonly cloudformation: CloudFormation;
  readonly functions: Functions;
  readonly tables: Tables;
  /** A unique name for a change set or for an idempotent request. */
  readonly newId: () => string;
  readonly pause: (ms: number) => Promise<void>;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

/** Operations on the data of a stack's table. */
export interface Tables {
  /** Writes the version record and registers `default` if they are missing. Changes nothing else. */
  prepare(tableName: string): Promise<TableReadiness>;
  readVersion(tableName: string): Promise<TableVersion>;
  /** Raises the version record to the version of this package. Returns false if it has that version. */
  raise(tableName: string): Promise<boolean>;
  /** null: there is no such table. */
  readFacts(tableName: string): Promise<TableFacts | null>;
  migrate(options: Pick<MigrateOptions, 'tableName' | 'dryRun' | 'raise' | 'onProgress'>): Promise<MigrationReport>;
}

/** Receives the progress of an operation. */
export interface Watcher {
  onEvent(event: StackEvent): void;
  /** The current step: "waiting for stack headgate-pre". */
  onStep(text: string): void;
}

/** The port to CloudFormation: the calls that Headgate needs. Every call has a timeout. */
export interface CloudFormation {
  /** By name, or by id when the stack is deleted; null: there is none. */
  describeStack(nameOrId: string): Promise<Stack | null>;
  /** Every stack of the region, page by page. */
  listStacks(): AsyncIterable<Stack>;
  /** The newest event first. Events before the last operation may be missing. */
  readEvents(nameOrId: string): Promise<readonly StackEvent[]>;
  /** The stack's resources: physical ids (for a table or a function, its name) by logical id. */
  readResources(name: string): Promise<StackResources>;
  /** The logical ids of the resources that stay when the stack is deleted, from the stack's template. */
  readRetained(name: string): Promise<readonly string[]>;
  /** null: no changes. Some endpoints report this at once. */
  createChangeSet(request: ChangeSetRequest): Promise<CreatedChangeSet | null>;
  readChangeSet(id: string): Promise<ChangeSet>;
  deleteChangeSet(id: string): Promise<void>;
  executeChangeSet(id: string, token: string): Promise<void>;
  deleteStack(nameOrId: string, token: string): Promise<void>;
  readonly region: () => Promise<string>;
  close(): void;
}

export interface Stack {
  readonly id: string;
  readonly name: string;
  /** `CREATE_COMPLETE`, `UPDATE_ROLLBACK_IN_PROGRESS`, ... */
  readonly status: string;
  readonly reason: string | null;
  readonly createdAt: Date | null;
  readonly updatedAt: Date | null;
  readonly parameters: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
}

export type StackResources = Readonly<Record<string, string>>;

export interface StackEvent {
  readonly id: string;
  readonly at: Date;
  readonly logicalId: string;
  readonly physicalId: string | null;
  readonly type: string;
  readonly status: string;
  readonly reason: string | null;
  /** The event concerns the stack itself, not one of its resources. */
  readonly ofStack: boolean;
}

export interface ChangeSetRequest {
  readonly stack: string;
  readonly name: string;
  readonly type: 'CREATE' | 'UPDATE' | 'IMPORT';
  readonly template: string;
  readonly parameters: readonly StackParameter[];
  readonly tags: Readonly<Record<string, string>>;
  /** For an import: the existing resources, by logical id. */
  readonly imports?: Readonly<Record<string, ImportedResource>>;
}

export interface ImportedResource {
  readonly type: string;
  /** The properties that identify the resource to CloudFormation: `{ TableName: 'headgate-pre' }`. */
  readonly identifier: Readonly<Record<string, string>>;
}

export interface CreatedChangeSet {
  readonly id: string;
  readonly stackId: string;
}

export type StackParameter =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly previous: true };

export interface ChangeSet {
  readonly id: string;
  /** `CREATE_PENDING`, `CREATE_IN_PROGRESS`, `CREATE_COMPLETE`, `FAILED`, ... */
  readonly status: string;
  readonly reason: string | null;
  readonly changes: readonly ResourceChange[];
}

export interface ResourceChange {
  readonly action: string;
  readonly logicalId: string;
  readonly physicalId: string | null;
  readonly type: string;
  /** null: the resource is new or removed, so nothing is replaced. */
  readonly replacement: 'yes' | 'no' | 'conditional' | null;
  /** The parts that change: `Properties`, `Tags`, `Metadata`, ...; empty when CloudFormation gives none. */
  readonly scope: readonly string[];
}

/** The port to Lambda: the state of a function, and its code. */
export interface Functions {
  /** null: there is no such function. */
  describe(name: string): Promise<FunctionState | null>;
  uploadCode(name: string, zip: Uint8Array): Promise<void>;
  /** The zip that the function runs; null: there is no such function. */
  readCode(name: string): Promise<FunctionCode | null>;
  close(): void;
}

export interface FunctionCode {
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

export interface FunctionState {
  readonly name: string;
  /** The hash of the zip that the function runs. */
  readonly sha256: string;
  /** `Active`, `Pending`, `Inactive`, `Failed` */
  readonly state: string;
  /** `Successful`, `InProgress`, `Failed` */
  readonly update: string;
  /** Why the function failed; null: Lambda gives no reason. */
  readonly reason: string | null;
  readonly runtime: string | null;
}

export type Readiness =
  | { readonly kind: 'ready' }
  /** An update is in progress; Lambda refuses other updates until it ends. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'failed'; readonly reason: string };

export function readinessOf({ state, update, reason }: FunctionState): Readiness {
  if (state === 'Pending' || update === 'InProgress') return { kind: 'busy' };
  if (state === 'Failed' || update === 'Failed') return { kind: 'failed', reason: reason ?? 'no reason is given' };
  return { kind: 'ready' };
}
