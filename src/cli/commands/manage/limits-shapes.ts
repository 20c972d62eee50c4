/** `--json` of `limits plan`, `limits diff`; `limits apply`: the changes that were made */
export interface LimitsPlanShape {
  /** In the order in which they are made. */
  readonly changes: readonly {
    readonly action: 'create' | 'update' | 'delete';
    readonly target: LimitsTargetShape;
    /** null: the object does not exist yet. Unset fields are left out, here and below. */
    readonly before: LimitsFieldsShape | null;
    /** null: the object is deleted. */
    readonly after: LimitsFieldsShape | null;
  }[];
  /** Manual changes since the last apply that differ from the file. */
  readonly drift: readonly {
    readonly target: LimitsTargetShape;
    /** The fields that differ, as they were applied. */
    readonly applied: LimitsFieldsShape;
    /** The same fields as they are now; null: the object was removed. */
    readonly live: LimitsFieldsShape | null;
  }[];
  /** The number of objects that match the file. */
  readonly unchanged: number;
}

export type LimitsTargetShape =
  | { readonly kind: 'system' }
  | { readonly kind: 'resource'; readonly resource: string }
  | { readonly kind: 'record'; readonly entityId: string }
  | { readonly kind: 'entity_default'; readonly entityId: string }
  | { readonly kind: 'entity'; readonly entityId: string; readonly resource: string };

/** For a record `name`, `parent`, `cascade`, `metadata`, `paused`; else `limits`, and for the system `onUnavailable`. */
export type LimitsFieldsShape = Readonly<Record<string, unknown>>;

/** `--json` of `limits export`: a limits file, as JSON */
export interface LimitsExportShape {
  readonly namespace: string;
  readonly system?: Readonly<Record<string, unknown>>;
  readonly resources?: Readonly<Record<string, unknown>> | null;
  readonly entities?: Readonly<Record<string, unknown>> | null;
}
