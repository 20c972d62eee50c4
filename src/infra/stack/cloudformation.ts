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
  readonly changes: readonly Change[];
}

export interface Change {
  readonly action: string;
  readonly logicalId: string;
  readonly physicalId: string | null;
  readonly type: string;
  /** null: the resource is new or removed, so nothing is replaced. */
  readonly replacement: 'yes' | 'no' | 'perhaps' | null;
  /** The parts that change: `Properties`, `Tags`, `Metadata`, ...; empty when CloudFormation gives none. */
  readonly scope: readonly string[];
}
