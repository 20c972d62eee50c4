import { BackendUnavailable, LeaseClosed, ValidationError } from '../core/errors.js';
import { checkAmounts } from './check-amounts.js';
import type { Sender } from './http.js';

export type DecidedBy = 'store' | 'deny-cache' | 'fallback' | 'open';

interface LeaseKey {
  readonly entityId: string;
  readonly resource: string;
}

type Amounts<L extends string> = { readonly [Name in L]?: number };

/** A lease as the server answered it. */
export interface LeaseBody {
  readonly id: string;
  /** null: the lease has no holder, so that nothing can be settled or given back. */
  readonly token: string | null;
  readonly expiresAt: string | null;
  readonly consumed: Readonly<Record<string, number>>;
}

/** What is sent with every operation of a lease. */
export interface LeaseMark {
  readonly token: string;
  /** Of a request that repeats one without an answer: the expiry of the lease, as this client knows it. */
  readonly repeat?: string | undefined;
}

/** What else is sent for each operation of a lease. JSON leaves out what is undefined. */
export interface LeaseOperations {
  readonly settle: { readonly amounts: Amounts<string> };
  readonly adjust: { readonly amounts: Amounts<string>; readonly operationId: string };
  readonly extend: { readonly ttlMs?: number | undefined };
  readonly release: object;
  readonly commit: { readonly amounts?: Amounts<string> | undefined };
  readonly rollback: object;
}

/**
 * The handle of a grant. Its operations go to the server with the lease's token, and may be repeated: each counts once. A
 * lease that has no token (rates only, without `portable: true`) can only be committed, which does nothing.
 */
export class RemoteLease<L extends string = string> {
  readonly id: string;
  readonly token: string | null;
  readonly entityId: string;
  readonly resource: string;
  /** Not `store`: an outage policy has granted the lease. Without a token its operations then change nothing. */
  readonly decidedBy: DecidedBy;
  readonly #sender: Sender;
  #body: LeaseBody;
  #closed: 'committed' | 'rolled-back' | null = null;
  /** An operation got no answer: the next one may be the same again. */
  #isUnanswered = false;
  readonly #settledNames = new Set<string>();

  constructor(sender: Sender, ask: LeaseKey, body: LeaseBody, decidedBy: DecidedBy = 'store') {
    this.#sender = sender;
    this.decidedBy = decidedBy;
    this.#body = body;
    this.id = body.id;
    this.token = body.token;
    this.entityId = ask.entityId;
    this.resource = ask.resource;
  }

  get consumed(): Readonly<Record<L, number>> {
    return this.#body.consumed;
  }

  get expiresAt(): Date | null {
    return this.#body.expiresAt === null ? null : new Date(this.#body.expiresAt);
  }

  get state(): 'open' | 'committed' | 'rolled-back' {
    return this.#closed ?? 'open';
  }

  /** @internal The limits whose real totals were stated. */
  get settledNames(): ReadonlySet<string> {
    return this.#settledNames;
  }

  /**
   * Adds to what was taken, or gives part of it back. May cause debt; never denies. `operationId`: a call that repeats the id
   * of one of the last adjusts counts once. Default: a new id, so that a request that is sent again counts once.
   */
  async adjust(deltas: Amounts<L>, options: { readonly operationId?: string } = {}): Promise<void> {
    const { operationId = crypto.randomUUID() } = options;
    checkAmounts('deltas', deltas);
    await this.#operate('adjust', { amounts: deltas, operationId });
  }

  /** States the real totals of the named limits. */
  async settle(actuals: Amounts<L>): Promise<void> {
    checkAmounts('actuals', actuals);
    await this.#operate('settle', { amounts: actuals });
    for (const name of Object.keys(actuals)) this.#settledNames.add(name);
  }

  /** Gives the slots back now; the lease stays open for settle. No effect on a lease that has ended. */
  async release(): Promise<void> {
    if (this.#closed !== null) return;
    await this.#operate('release', {});
  }

  /** Moves the expiry to `ttlMs` from now. */
  async extend(ttlMs?: number): Promise<void> {
    await this.#operate('extend', { ttlMs });
  }

  /** Settles, and gives the slots back. */
  async commit(actuals?: Amounts<L>): Promise<void> {
    checkAmounts('actuals', actuals);
    await this.#end('committed', 'commit', { amounts: actuals });
  }

  /** Gives everything back. */
  async rollback(): Promise<void> {
    await this.#end('rolled-back', 'rollback', {});
  }

  /** Commits the lease if it is still open. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed === null) await this.commit();
  }

  async #end<Kind extends 'commit' | 'rollback'>(
    state: 'committed' | 'rolled-back',
    operation: Kind,
    body: LeaseOperations[Kind],
  ): Promise<void> {
    if (this.#closed === state) return;
    await this.#operate(operation, body);
    this.#closed = state;
  }

  async #operate<Kind extends keyof LeaseOperations>(operation: Kind, body: LeaseOperations[Kind]): Promise<void> {
    if (this.#closed !== null) throw new LeaseClosed(this.id, this.#closed, operation);
    if (this.token === null) {
      if (this.decidedBy !== 'store' || (operation === 'commit' && !(body as LeaseOperations['commit']).amounts))
        return;
      throw new ValidationError('portable', `true in the request of a lease that is to ${operation}`, undefined);
    }
    const repeat = this.#body.expiresAt ?? undefined;
    const sent: LeaseMark = { token: this.token, ...body, repeat: this.#isUnanswered ? repeat : undefined };
    const sending = { repeatable: true, ifRepeated: { repeat }, member: 'lease' } as const;
    try {
      const answer = await this.#sender.send('POST', `/v1/leases/${operation}`, sent, sending);
      this.#body = { ...this.#body, ...(answer.body as { readonly lease: LeaseBody }).lease };
    } catch (error) {
      this.#isUnanswered ||= error instanceof BackendUnavailable;
      throw error;
    }
  }
}
