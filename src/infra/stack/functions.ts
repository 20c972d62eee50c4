/** The port to Lambda: the state of a function, and its code. */
export interface Functions {
  /** null: there is no such function. */
  describe(name: string): Promise<FunctionState | null>;
  uploadCode(name: string, zip: Uint8Array): Promise<void>;
  /** The zip that it runs; null: there is no such function. */
  readCode(name: string): Promise<FunctionCode | null>;
  close(): void;
}

export interface FunctionCode {
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

export interface FunctionState {
  readonly name: string;
  /** Of the zip that it runs. */
  readonly sha256: string;
  /** `Active`, `Pending`, `Inactive`, `Failed` */
  readonly state: string;
  /** `Successful`, `InProgress`, `Failed` */
  readonly update: string;
  /** Why it failed; null: nothing is said. */
  readonly reason: string | null;
  readonly runtime: string | null;
}

export type Readiness =
  | { readonly kind: 'ready' }
  /** Something is under way, and nothing else can be done meanwhile. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'failed'; readonly reason: string };

export function readinessOf({ state, update, reason }: FunctionState): Readiness {
  if (state === 'Pending' || update === 'InProgress') return { kind: 'busy' };
  if (state === 'Failed' || update === 'Failed') return { kind: 'failed', reason: reason ?? 'no reason is given' };
  return { kind: 'ready' };
}
