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
