import type { MigrateShape } from '../commands/maintain/migrate.js';

/** What `--json` prints of stacks; see `common-shapes.ts`. Instants are ISO 8601 in UTC. */

/** `deploy` */
export interface DeployShape {
  readonly stack: string;
  /** true: nothing was changed; the fields show what would happen. */
  readonly dryRun: boolean;
  /** `none`: the stack matches the template. `adopt`: an existing table was put under the stack. */
  readonly action: 'create' | 'update' | 'none' | 'adopt';
  /** The status of CloudFormation; null: there is no stack. */
  readonly status: string | null;
  readonly changes: readonly StackChangeShape[];
  readonly outputs: Readonly<Record<string, string>>;
  readonly functions: readonly UploadShape[];
  /** null: a dry run. */
  readonly table: {
    readonly name: string;
    /** false: the table was ready before. */
    readonly prepared: boolean;
  } | null;
}

export interface StackChangeShape {
  /** `Add`, `Modify`, `Remove`, ... */
  readonly action: string;
  readonly logicalId: string;
  readonly physicalId: string | null;
  readonly type: string;
  /** null: there is nothing to replace. */
  readonly replacement: 'yes' | 'no' | 'conditional' | null;
}

export interface UploadShape {
  readonly name: string;
  /** false: the function has this code already. In a dry run: whether the code would be uploaded. */
  readonly uploaded: boolean;
  readonly sha256: string;
}

/** `upgrade` */
export interface UpgradeShape {
  readonly stack: string;
  readonly dryRun: boolean;
  readonly template: Pick<DeployShape, 'status' | 'changes'> & {
    readonly action: Exclude<DeployShape['action'], 'adopt'>;
  };
  readonly data: Omit<MigrateShape, 'dryRun'>;
  readonly functions: readonly UploadShape[];
}

/** Items of `list` */
export interface StackItemShape {
  readonly stack: string;
  readonly env: string | null;
  readonly status: string;
  /** The version of Headgate that deployed it last; null: it was deployed without this program. */
  readonly version: string | null;
  readonly table: string | null;
  readonly createdAt: string | null;
  readonly updatedAt: string | null;
}

/** `status` */
export interface StackStatusShape extends StackItemShape {
  readonly region: string;
  readonly statusReason: string | null;
  /** The version of this package. */
  readonly thisVersion: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
  /** The version record of the table, compared with this package; null: the stack has no table. */
  readonly tableVersion: {
    readonly state: 'current' | 'upgradable' | 'older' | 'newer' | 'no-record' | 'no-table';
    readonly schemaVersion: number | null;
  } | null;
  readonly functions: readonly {
    readonly name: string;
    readonly state: string | null;
    readonly update: string | null;
    readonly reason: string | null;
    /** Whether it runs the code of this package. */
    readonly code: 'current' | 'other' | 'missing';
  }[];
  /** Why the last operation on the stack failed; `logicalId` is null for the stack itself. */
  readonly lastFailure: {
    readonly logicalId: string | null;
    readonly type: string | null;
    readonly reason: string;
  } | null;
}

/** `delete` */
export interface StackDeletedShape {
  readonly stack: string;
  readonly dryRun: boolean;
  /** false: there was no such stack. In a dry run: whether there is one. */
  readonly deleted: boolean;
  /** The resources that stay. */
  readonly kept: readonly {
    readonly logicalId: string;
    readonly physicalId: string;
  }[];
}
