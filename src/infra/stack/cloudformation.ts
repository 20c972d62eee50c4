/** The port to CloudFormation: what Headgate asks of it, and nothing else. Every call has an end, in time too. */
export interface CloudFormation {
  /** By name, or by id once it is deleted; null: there is none. */
  describeStack(nameOrId: string): Promise<Stack | null>;
  /** Every stack of the region, page by page. */
  listStacks(): AsyncIterable<Stack>;
  /** The last first; those that belong to operations before the last one may be left out. */
  readEvents(nameOrId: string): Promise<readonly StackEvent[]>;
  /** What the stack has made: physical ids (of a table or a function: its name) by logical ids. */
  readResources(name: string): Promise<StackResources>;
  /** Logical ids of what a deletion of the stack leaves, by the template that it was made of. */
  readRetained(name: string): Promise<readonly string[]>;
  /** null: there is nothing to change, which some find out at once. */
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
  /** It is about the stack itself, not about one of its resources. */
  readonly ofStack: boolean;
}

export interface ChangeSetRequest {
  readonly stack: string;
  readonly name: string;
  readonly type: 'CREATE' | 'UPDATE' | 'IMPORT';
  readonly template: string;
  readonly parameters: readonly StackParameter[];
  readonly tags: Readonly<Record<string, string>>;
  /** Of an import: what exists already, by logical id. */
  readonly imports?: Readonly<Record<string, ImportedResource>>;
}

export interface ImportedResource {
  readonly type: string;
  /** The properties by which CloudFormation knows it: `{ TableName: 'headgate-pre' }`. */
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
  readonly changes: readonly Change[];
}

export interface Change {
  readonly action: string;
  readonly logicalId: string;
  readonly physicalId: string | null;
  readonly type: string;
  /** null: nothing is replaced, because it is new or removed. */
  readonly replacement: 'yes' | 'no' | 'conditional' | null;
  /** What of it changes: `Properties`, `Tags`, `Metadata`, ...; empty where nothing is said. */
  readonly scope: readonly string[];
}
