import type { Awaitable, LeaseRecord, Page, PageRequest } from '../../backend.js';
import { wholeTokens } from '../../core/bucket/decide.js';
import { LeaseTokenInvalid, ValidationError } from '../../core/errors.js';
import { checkEntityId, checkResource, parsePlainResource } from '../../core/identifiers.js';
import { checkKnownFields } from '../../core/known-fields.js';
import type { EpochMs } from '../../core/units.js';
import { callStore, changeStore, type Context } from '../context.js';
import { Lease } from '../lease/lease.js';
import { PortableAccount } from '../lease/portable-account.js';
import { emitLeaseReleased, emitSlotsReleased } from '../lease/released-events.js';
import { type Listing, listing, type ListOptions } from './listing.js';

/** A lease that has a holder in a bucket. */
export interface LeaseView {
  readonly id: string;
  /** The entity of the bucket: the one that acquired, or one of its parents. */
  readonly entityId: string;
  readonly resource: string;
  /** The slots that it holds. Of a portable lease, and where an expiry gives them back, also the rate tokens. */
  readonly amounts: Readonly<Record<string, number>>;
  readonly caller?: string;
  readonly acquiredAt?: Date;
  readonly expiresAt: Date;
  /** Only of a lease that was acquired with `portable: true`. */
  readonly portable?: true;
}

/** Which buckets to look at: one entity and resource, all buckets of an entity, or all of the namespace. */
export interface LeaseQuery {
  readonly entityId?: string;
  readonly resource?: string;
}

const LEASE_ID = /^[0-9A-Za-z_~]{11}$/;
const QUERY_FIELDS: ReadonlySet<string> = new Set(['entityId', 'resource']);
const LARGEST_PAGE = 1_000;

/** `limiter.leases`: the leases that hold something in a bucket. */
export class LeasesApi {
  readonly #context: () => Awaitable<Context>;
  readonly #secrets: readonly string[];

  constructor(context: () => Awaitable<Context>, secrets: readonly string[]) {
    this.#context = context;
    this.#secrets = secrets;
  }

  /** @internal Whether tokens of leases can be signed. */
  get hasSecret(): boolean {
    return this.#secrets.length > 0;
  }

  /** @internal A text with its signature by the lease secrets, for tokens of the server. */
  async sign(text: string): Promise<string> {
    return (await import('../lease/lease-token.js')).signText(text, this.#secrets);
  }

  /** @internal The text that `sign` got. Throws `LeaseTokenInvalid` if it was altered. */
  async readSigned(token: string): Promise<string> {
    return (await import('../lease/lease-token.js')).readSignedText(token, this.#secrets);
  }

  /**
   * The leases that have a holder, including expired ones that were not reclaimed yet: of an entity and resource, of an
   * entity, or of the namespace. A lease that cascades is listed once for each of its levels.
   */
  list(query: LeaseQuery & ListOptions = {}): Listing<LeaseView> {
    return listing(query, viewOf, async (page) => {
      checkQuery(query);
      return readPage(await this.#context(), query, page);
    });
  }

  /**
   * Continues the lease of a token, in any process that has the secret. Reads the state of the lease: a lease that has
   * ended or expired is returned too, and its operations say so. `close` does not end it: that is left to its operations
   * and its expiry. Throws `LeaseTokenInvalid` for a token that was altered, or that belongs to another secret or namespace.
   */
  resume<L extends string = string>(token: string): Promise<Lease<L>> {
    return this.resumeRepeat(token, 0);
  }

  /**
   * @internal As `resume`, for a request that repeats one without an answer. A holder that is missing before `unexpiredUntilMs`
   * was removed after the lease had ended, most likely by the first request: nothing is due.
   */
  async resumeRepeat<L extends string = string>(token: string, unexpiredUntilMs: EpochMs): Promise<Lease<L>> {
    const { parseLeaseToken } = await import('../lease/lease-token.js');
    const content = parseLeaseToken(token, this.#secrets);
    const context = await this.#context();
    if (content.namespaceId !== context.namespaceId) {
      throw new LeaseTokenInvalid('it belongs to another namespace');
    }
    const { leaseId, levels, ttlMs } = content;
    const holders = await callStore(context, 'resuming a lease', (call) =>
      context.backend.leases.find(call, leaseId, levels),
    );
    // Not one of the leases that `close` releases: a second worker that got the same message must not end the work of
    // the first.
    return new Lease<L>(context, new PortableAccount(context, content, holders, unexpiredUntilMs), 'store', ttlMs);
  }

  /**
   * Ends a lease by its id, as its expiry would: its slots return, and its rates if an expiry gives them back. For
   * leases whose process is gone; audited as `lease.release`, once for each level. Looks at the buckets that `query`
   * names, by default at all of the namespace. False: none of them has the lease.
   */
  async release(id: string, query: LeaseQuery = {}): Promise<boolean> {
    if (typeof id !== 'string' || !LEASE_ID.test(id)) throw new ValidationError('id', 'the id of a lease', id);
    checkKnownFields('query', query, QUERY_FIELDS);
    checkQuery(query);
    const context = await this.#context();
    const ended: LeaseRecord[] = [];
    let after: string | null = null;
    do {
      const page: Page<LeaseRecord> = await readPage(context, query, { limit: LARGEST_PAGE, after });
      for (const record of page.items) {
        if (record.id !== id) continue;
        const { entityId, resource } = record;
        const released = await changeStore(context, 'releasing a lease', (call) =>
          context.backend.leases.release(call, id, { entityId, resource }),
        );
        if (released) {
          context.lines.giveBack(record, [...record.slots, ...(record.rates ?? [])]);
          emitSlotsReleased(context, record);
          ended.push(record);
        }
      }
      after = page.next;
    } while (after !== null);
    await emitLeaseReleased(context, ended);
    return ended.length > 0;
  }
}

function checkQuery({ entityId, resource }: LeaseQuery): void {
  if (entityId !== undefined) checkEntityId(entityId);
  if (resource === undefined) return;
  checkResource(resource);
  if (entityId === undefined) throw new ValidationError('entityId', 'given with a resource', entityId);
}

async function readPage(
  context: Context,
  { entityId, resource }: LeaseQuery,
  page: PageRequest,
): Promise<Page<LeaseRecord>> {
  const { leases } = context.backend;
  return callStore(context, 'listing leases', (call) => {
    if (entityId === undefined) return leases.listAll(call, page);
    return resource === undefined
      ? leases.listOfEntity(call, entityId, page)
      : leases.list(call, entityId, resource, page);
  });
}

function viewOf(record: LeaseRecord): LeaseView {
  const { id, entityId, resource, slots, rates, caller, acquiredAtMs, expiresAtMs, portable } = record;
  const taken = portable?.taken ?? rates ?? [];
  const amounts = [...slots, ...taken].map(({ name, milli }) => [name, wholeTokens(milli)] as const);
  return {
    id,
    entityId,
    resource: parsePlainResource(resource),
    amounts: Object.fromEntries(amounts),
    ...(caller === null ? {} : { caller }),
    acquiredAt: new Date(acquiredAtMs),
    expiresAt: new Date(expiresAtMs),
    ...(portable === undefined ? {} : { portable: true as const }),
  };
}
