import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend, Page } from '../../../src/backend.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { isHeadgateError } from '../../../src/core/errors.js';
import { Limit } from '../../../src/core/limit.js';
import { Lease } from '../../../src/limiter/lease/lease.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { Random } from '../../../src/testing/conformance/kit/random.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';

/** One store with the processes that share it. Two worlds must give the same answers to the same calls. */
export class World {
  readonly name: string;
  readonly clock: FakeClock;
  /** Failures that no caller awaited. */
  readonly reported: unknown[] = [];
  readonly #connect: () => Backend;
  readonly #processes: RateLimiter[] = [];
  #leases: { readonly lease: Lease; readonly process: number }[] = [];
  readonly #random: Random;
  readonly #auditIds = new Map<string, number>();

  constructor(name: string, connect: () => Backend, clock: FakeClock, seed: number) {
    this.name = name;
    this.clock = clock;
    this.#connect = connect;
    this.#random = new Random(seed);
  }

  async open(options: LimiterOptions): Promise<RateLimiter> {
    const { random } = Math;
    // A limiter keeps the random function that exists when it is constructed. The same numbers give the same lease ids
    // in both worlds.
    Math.random = () => this.#random.whole(0, 2 ** 30 - 1) / 2 ** 30;
    const onError = (error: unknown, where: string): number => this.reported.push([where, error]);
    const opening = RateLimiter.open(this.#connect(), { clock: this.clock, onError, ...options });
    Math.random = random;
    return opening;
  }

  /** Closes a process with its leases, and opens it again with other options. */
  async restart(process: number, options: LimiterOptions): Promise<void> {
    await this.#processes[process]?.close();
    this.#leases = this.#leases.filter((held) => held.process !== process);
    this.#processes[process] = await this.open(options);
  }

  async process(at: number, namespace: string): Promise<RateLimiter> {
    const limiter = this.#processes[at]!;
    return namespace === 'default' ? limiter : limiter.in(namespace);
  }

  keep(process: number, lease: Lease): void {
    this.#leases.push({ lease, process });
  }

  /** One of the newest leases. */
  lease(back: number): Lease | undefined {
    return this.#leases.at(-1 - (back % Math.max(1, this.#leases.length)))?.lease;
  }

  async close(): Promise<void> {
    for (const limiter of this.#processes) await limiter.close();
  }

  /** An answer as text. Ids of audit records differ between worlds, so they become ordinals. */
  show(answer: unknown): string {
    return JSON.stringify(this.#plain(answer));
  }

  #plain(value: unknown): unknown {
    if (typeof value === 'string') return value.replaceAll(ULID, (id) => this.#ordinal(id));
    if (value === undefined) return '<undefined>';
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value === 'number') return Object.is(value, -0) ? '-0' : value;
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Date) return `<${value.toISOString()}>`;
    if (value instanceof Limit) return `<${String(value)}>`;
    if (value instanceof Error) return { error: codeOf(value), message: this.#plain(value.message) };
    if (value instanceof Lease) return this.#plain(viewOf(value));
    if (Array.isArray(value)) return value.map((item) => this.#plain(item));
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return entries.map(([key, item]) => [key, this.#plain(item)]);
  }

  #ordinal(id: string): string {
    const known = this.#auditIds.get(id) ?? this.#auditIds.size;
    this.#auditIds.set(id, known);
    return `<audit ${known}>`;
  }
}

const ULID = /\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g;

function codeOf(error: Error): string {
  return isHeadgateError(error) ? error.code : error.name;
}

function viewOf(lease: Lease): unknown {
  const { id, entityId, resource, decidedBy, state, consumed, expiresAt } = lease;
  return { id, entityId, resource, decidedBy, state, consumed, expiresAt };
}

/** A memory store and a file store on one clock. `end` closes and removes both. */
export function twinWorlds(
  clock: FakeClock,
  seed: number,
): { readonly worlds: World[]; readonly end: () => Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-twins-'));
  const shared = memory();
  const worlds = [
    new World('memory', () => shared, clock, seed),
    new World('file', () => file({ path: join(folder, 'twin.db') }), clock, seed),
  ];
  const end = async (): Promise<void> => {
    for (const world of worlds) await world.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { worlds, end };
}

/** All pages of a list, in order. */
export async function pages<T>(fetch: (after: { after?: string }) => PromiseLike<Page<T>>): Promise<Page<T>[]> {
  const all: Page<T>[] = [];
  for (let next: string | null | undefined; next !== null;) {
    const page: Page<T> = await fetch(next === undefined ? {} : { after: next });
    all.push(page);
    next = page.next;
  }
  return all;
}
