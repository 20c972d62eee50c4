import { randomBytes } from 'node:crypto';
import { LeaseTokenInvalid } from '../../core/errors.js';
import type { LeasesApi } from '../../limiter/api/leases-api.js';
import type { Lease } from '../../limiter/lease/lease.js';

/** What an answer says of a lease, and whom it belongs to. */
export interface FallbackLease {
  readonly namespace: string;
  readonly entityId: string;
  readonly id: string;
  readonly expiresAt: string | null;
  readonly consumed: Readonly<Record<string, number>>;
}

/** The kind of the token, other than that of leases in the store. */
const PREFIX = 'hgf1.';

/** A lease that is dropped keeps its slots until it expires. Each takes about a kilobyte. */
const MAX_LEASES = 10_000;
/** Leases that have ended are kept too up to this number, so that a contradictory request is refused. */
const KEPT_LEASES = 1_000;

/**
 * The leases that the outage policy `local` granted: their slots are in the memory of this process, so that no other process
 * can give them back. Their token says what an answer repeats, for another server that gets it.
 */
export class FallbackLeases {
  readonly #signer: Pick<LeasesApi, 'sign' | 'readSigned'>;
  /** By token, in the order of the grants. */
  readonly #leases = new Map<string, Lease>();

  constructor(signer: Pick<LeasesApi, 'sign' | 'readSigned'>) {
    this.#signer = signer;
  }

  /** Whether a token of a lease is one of these. */
  static isToken(token: string): boolean {
    return token.startsWith(PREFIX);
  }

  /** Keeps a lease until it expires. Returns the token that finds it. */
  async add(lease: Lease, namespace: string): Promise<string> {
    const { entityId, id, expiresAt, consumed } = lease;
    const shown: FallbackLease = { namespace, entityId, id, expiresAt: expiresAt?.toISOString() ?? null, consumed };
    // The ids of two processes may be equal.
    const content = JSON.stringify([randomBytes(9).toString('base64url'), shown]);
    const token = await this.#signer.sign(PREFIX + Buffer.from(content).toString('base64url'));
    this.#dropOldest();
    this.#leases.set(token, lease);
    return token;
  }

  /** `lease`: null if this process does not have it, or has it no more. Throws if the token was altered. */
  async find(
    token: string,
    namespace: string,
  ): Promise<{ readonly lease: Lease | null; readonly shown: FallbackLease }> {
    const content = (await this.#signer.readSigned(token)).slice(PREFIX.length);
    const [, shown] = JSON.parse(Buffer.from(content, 'base64url').toString()) as [string, FallbackLease];
    if (shown.namespace !== namespace) throw new LeaseTokenInvalid('it belongs to another namespace');
    return { lease: this.#leases.get(token) ?? null, shown };
  }

  #dropOldest(): void {
    for (const [token, lease] of this.#leases) {
      const { size } = this.#leases;
      if (size < KEPT_LEASES || (size < MAX_LEASES && lease.state === 'open')) return;
      this.#leases.delete(token);
    }
  }
}
