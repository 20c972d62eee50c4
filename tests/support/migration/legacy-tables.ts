import type { AttributeValue, Item } from '../../../src/backends/dynamodb/client/transport.js';
import { Random } from '../../../src/testing/conformance/kit/random.js';

/** `literal` is the layout of v0.9, written by the old constructor under an unregistered namespace id. */
export const LAYOUTS = ['per-limit', 'composite', 'v0.9', 'literal'] as const;
export type LegacyLayout = (typeof LAYOUTS)[number];

/** A rule in tokens and seconds, as an operator of the published limiters would write it. */
interface OldLimit {
  readonly name: string;
  readonly capacity: number;
  readonly burst: number;
  readonly periodSec: number;
}

/** The data of the items, computed without any tested code. Amounts are in thousandths of tokens. */
export interface LegacyTable {
  readonly items: readonly Item[];
  /** No bucket was written after this time. */
  readonly nowMs: number;
  /** By `entity resource limit`: the balance at `nowMs`. */
  readonly left: ReadonlyMap<string, bigint>;
  readonly consumed: ReadonlyMap<string, bigint>;
  /** Ids with the fields of their records. */
  readonly entities: ReadonlyMap<string, { readonly parentId: string | null; readonly cascade: boolean }>;
  /** By `entity resource`, `* resource` or `* *`: limits as text for `Limit.parse`. */
  readonly configs: ReadonlyMap<string, readonly string[]>;
  /** By `entity resource window start`: tokens by limit, and events. */
  readonly usage: ReadonlyMap<string, Readonly<Record<string, number>>>;
  readonly audits: number;
}

export const OLD_NAMESPACE = 'a7x3kqB9_-Z';
const NAMESPACES: Readonly<Record<LegacyLayout, string | null>> = {
  'per-limit': null,
  composite: null,
  'v0.9': OLD_NAMESPACE,
  literal: 'default',
};
const NOW_MS = Date.UTC(2026, 5, 15, 12, 30);
const HOUR_MS = 3_600_000;

const RULES: Readonly<Record<string, readonly OldLimit[]>> = {
  'gpt-4': [
    { name: 'rpm', capacity: 100, burst: 150, periodSec: 60 },
    { name: 'tpm', capacity: 10_000, burst: 10_000, periodSec: 60 },
  ],
  'openai/embeddings': [
    { name: 'rps', capacity: 7, burst: 7, periodSec: 1 },
    { name: 'tpd', capacity: 1_000_000, burst: 3_000_000, periodSec: 86_400 },
    { name: 'rp-h.x', capacity: 333, burst: 333, periodSec: 3_600 },
  ],
  'arn:aws:bedrock/model-1': [{ name: 'rpd', capacity: 10, burst: 10, periodSec: 86_400 }],
};
const RESOURCES = Object.keys(RULES);

/** A table of a published layout with at least `count` items. The same seed gives the same table. */
export function legacyTable(layout: LegacyLayout, count: number, seed: number): LegacyTable {
  const writer = new LegacyWriter(layout, new Random(seed));
  writer.system();
  for (let at = 0; writer.items.length < count; at++) writer.entity(`user-${at}`, at);
  const { items, left, consumed, entities, configs, usage, audits } = writer;
  return { items, nowMs: NOW_MS, left, consumed, entities, configs, usage, audits };
}

const text = (value: string): AttributeValue => ({ S: value });
const number = (value: number | bigint): AttributeValue => ({ N: String(value) });
const instant = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');

class LegacyWriter {
  readonly items: Item[] = [];
  readonly left = new Map<string, bigint>();
  readonly consumed = new Map<string, bigint>();
  readonly entities = new Map<string, { parentId: string | null; cascade: boolean }>();
  readonly configs = new Map<string, readonly string[]>();
  readonly usage = new Map<string, Record<string, number>>();
  audits = 0;
  readonly #layout: LegacyLayout;
  readonly #random: Random;
  readonly #prefix: string;

  constructor(layout: LegacyLayout, random: Random) {
    this.#layout = layout;
    this.#random = random;
    const ns = NAMESPACES[layout];
    this.#prefix = ns === null ? '' : `${ns}/`;
  }

  system(): void {
    for (const [resource, limits] of Object.entries(RULES)) {
      this.#config(`RESOURCE#${resource}`, '', resource, limits);
      this.configs.set(`* ${resource}`, limits.map(printed));
    }
    this.#config('SYSTEM#', '', '', [RULES['gpt-4']![0]!]);
    this.configs.set('* *', [printed(RULES['gpt-4']![0]!)]);
    if (this.#layout === 'literal') return;
    this.#put('SYSTEM#', '#VERSION', { schema_version: text('0.9.0'), client_min_version: text('0.0.0') });
    if (this.#layout !== 'v0.9') return;
    for (const [sk, more] of [
      ['#NAMESPACE#default', {}],
      [`#NSID#${OLD_NAMESPACE}`, {}],
    ] as const) {
      this.items.push({
        PK: text('_/SYSTEM#'),
        SK: text(sk),
        namespace_id: text(OLD_NAMESPACE),
        namespace_name: text('default'),
        status: text('active'),
        created_at: text(instant(NOW_MS - 1_000 * HOUR_MS)),
        GSI4PK: text('_'),
        GSI4SK: text('_/SYSTEM#'),
        ...more,
      });
    }
  }

  entity(id: string, at: number): void {
    if (at % 6 === 0) this.#meta(id, at);
    for (const resource of RESOURCES) {
      if (this.#random.whole(0, 2) > 0) this.#bucket(id, resource);
    }
    if (at % 9 === 0) this.#usage(id, this.#random.pick(RESOURCES));
    if (at % 11 === 0) this.#audit(id, at);
    if (at % 13 === 0) {
      const own = [{ name: 'rpm', capacity: 10 + at, burst: 20 + at, periodSec: 60 }];
      const resource = at % 2 === 0 ? '_default_' : 'own-resource';
      this.#config(`ENTITY#${id}`, `#${resource}`, resource, own);
      this.configs.set(`${id} ${resource}`, own.map(printed));
    }
  }

  #meta(id: string, at: number): void {
    const parentId = at % 12 === 0 && at > 0 ? `user-${at - 12 + (at % 24 === 0 ? 0 : 6)}` : null;
    const known = parentId !== null && this.entities.has(parentId) ? parentId : null;
    const cascade = this.#layout !== 'per-limit' && at % 24 === 0;
    this.entities.set(id, { parentId: known, cascade });
    this.#put(
      `ENTITY#${id}`,
      '#META',
      {
        name: text(`User ${at}`),
        parent_id: known === null ? { NULL: true } : text(known),
        metadata: { M: { tier: text('gold'), n: number(at), deep: { L: [{ BOOL: true }, { NULL: true }] } } },
        created_at: text(instant(NOW_MS - at * HOUR_MS)),
        ...(this.#layout === 'per-limit' ? {} : { cascade: { BOOL: cascade } }),
        ...(this.#layout === 'v0.9' ? { version: number(1 + (at % 3)) } : {}),
      },
      known === null
        ? { entity_id: text(id) }
        : {
            entity_id: text(id),
            GSI1PK: text(`${this.#prefix}PARENT#${known}`),
            GSI1SK: text(`CHILD#${id}`),
          },
    );
  }

  #config(owner: string, suffix: string, resource: string, limits: readonly OldLimit[]): void {
    if (this.#layout === 'per-limit') {
      for (const { name, capacity, burst, periodSec } of limits) {
        const middle = suffix === '' ? '' : `${resource}#`;
        this.#put(owner, `#LIMIT#${middle}${name}`, {
          resource: text(resource),
          limit_name: text(name),
          capacity: number(capacity),
          burst: number(burst),
          refill_amount: number(capacity),
          refill_period_seconds: number(periodSec),
        });
      }
      return;
    }
    const fields: Item = { resource: text(resource), config_version: number(3) };
    for (const { name, capacity, burst, periodSec } of limits) {
      const old = this.#layout === 'composite';
      fields[`l_${name}_cp`] = number(old ? capacity : burst);
      if (old) fields[`l_${name}_bx`] = number(burst);
      fields[`l_${name}_ra`] = number(capacity);
      fields[`l_${name}_rp`] = number(periodSec);
    }
    if (owner === 'SYSTEM#') fields['on_unavailable'] = text('allow');
    this.#put(owner, `#CONFIG${suffix}`, fields);
  }

  #bucket(entityId: string, resource: string): void {
    const limits = RULES[resource] ?? [];
    const index = { GSI2PK: text(`${this.#prefix}RESOURCE#${resource}`), entity_id: text(entityId) };
    if (this.#layout === 'per-limit') {
      for (const limit of limits) {
        const rf = NOW_MS - this.#random.whole(0, 90_000);
        const { tk, tc } = this.#balance(limit, 1);
        this.#expect(`${entityId} ${resource} ${limit.name}`, limit, [{ tk, tc, rf }], 1);
        const numbers = {
          resource: text(resource),
          limit_name: text(limit.name),
          tokens_milli: number(tk),
          last_refill_ms: number(rf),
          capacity_milli: number(limit.capacity * 1_000),
          burst_milli: number(limit.burst * 1_000),
          refill_amount_milli: number(limit.capacity * 1_000),
          refill_period_ms: number(limit.periodSec * 1_000),
          total_consumed_milli: number(tc),
        };
        const GSI2SK = text(`BUCKET#${entityId}#${limit.name}`);
        this.#put(`ENTITY#${entityId}`, `#BUCKET#${resource}#${limit.name}`, numbers, { ...index, GSI2SK });
      }
      return;
    }
    const count = this.#layout === 'composite' ? 1 : this.#random.pick([1, 1, 1, 1, 2, 4]);
    const parts = Array.from({ length: count }, () => ({
      rf: NOW_MS - this.#random.whole(0, 90_000),
      balances: limits.map((limit) => this.#balance(limit, count)),
    }));
    limits.forEach((limit, at) => {
      const shards = parts.map(({ rf, balances }) => ({ ...balances[at]!, rf }));
      this.#expect(`${entityId} ${resource} ${limit.name}`, limit, shards, count);
    });
    parts.forEach(({ rf, balances }, shard) => {
      const fields: Item = { resource: text(resource), rf: number(rf), ttl: number(2_000_000_000) };
      if (this.#random.whole(0, 1) === 0) delete fields['ttl'];
      limits.forEach(({ name, capacity, burst, periodSec }, at) => {
        const { tk, tc } = balances[at]!;
        const old = this.#layout === 'composite';
        fields[`b_${name}_tk`] = number(tk);
        fields[`b_${name}_tc`] = number(tc);
        fields[`b_${name}_cp`] = number((old ? capacity : burst) * 1_000);
        if (old) fields[`b_${name}_bx`] = number(burst * 1_000);
        fields[`b_${name}_ra`] = number(capacity * 1_000);
        fields[`b_${name}_rp`] = number(periodSec * 1_000);
      });
      if (this.#layout === 'composite') {
        const GSI2SK = text(`BUCKET#${entityId}`);
        this.items.push({
          PK: text(`ENTITY#${entityId}`),
          SK: text(`#BUCKET#${resource}`),
          ...fields,
          ...index,
          GSI2SK,
        });
        return;
      }
      this.items.push({
        PK: text(`${this.#prefix}BUCKET#${entityId}#${resource}#${shard}`),
        SK: text('#STATE'),
        ...fields,
        ...index,
        shard_count: number(count),
        cascade: { BOOL: false },
        b_wcu_tk: number(999_000),
        b_wcu_cp: number(1_000_000),
        b_wcu_ra: number(1_000_000),
        b_wcu_rp: number(1_000),
        b_wcu_tc: number(1_000),
        GSI2SK: text(`BUCKET#${entityId}#${shard}`),
        GSI3PK: text(`${this.#prefix}ENTITY#${entityId}`),
        GSI3SK: text(`BUCKET#${resource}#${shard}`),
        GSI4PK: text(NAMESPACES[this.#layout] ?? ''),
        GSI4SK: text(`BUCKET#${entityId}#${resource}#${shard}`),
      });
    });
  }

  /** Mostly between empty and full, sometimes a debt or more than the capacity. */
  #balance({ burst }: OldLimit, count: number): { readonly tk: bigint; readonly tc: bigint } {
    const most = Math.floor((burst * 1_000) / count);
    const kind = this.#random.whole(0, 9);
    const tk = kind === 0 ? -this.#random.whole(1, 3 * most) : kind === 1 ? most : this.#random.whole(0, most);
    return { tk: BigInt(tk), tc: BigInt(this.#random.whole(0, 2 ** 30)) * 1_000_003n };
  }

  #expect(
    name: string,
    { capacity, burst, periodSec }: OldLimit,
    shards: readonly { readonly tk: bigint; readonly tc: bigint; readonly rf: number }[],
    count: number,
  ): void {
    const [cap, amount, period] = [BigInt(burst) * 1_000n, BigInt(capacity) * 1_000n, BigInt(periodSec) * 1_000n];
    const fallen = (from: number, to: number, slow: bigint): bigint =>
      (BigInt(to) * amount) / (period * slow) - (BigInt(from) * amount) / (period * slow);
    const base = Math.max(...shards.map(({ rf }) => rf));
    const each = shards.map(({ tk, rf }, shard) => {
      const share = cap / BigInt(count) + (BigInt(shard) < cap % BigInt(count) ? 1n : 0n);
      return least(tk + fallen(rf, base, BigInt(count)), share);
    });
    const sum = least(
      each.reduce((a, b) => a + b, 0n),
      cap,
    );
    this.left.set(name, least(sum + fallen(base, NOW_MS, 1n), cap));
    this.consumed.set(
      name,
      shards.reduce((total, { tc }) => total + tc, 0n),
    );
  }

  #usage(entityId: string, resource: string): void {
    const startMs = Math.floor(NOW_MS / HOUR_MS) * HOUR_MS - this.#random.whole(1, 11) * HOUR_MS;
    const counts = { rpm: this.#random.whole(1, 500), total_events: this.#random.whole(1, 90) };
    this.usage.set(`${entityId} ${resource} hourly ${new Date(startMs).toISOString()}`, counts);
    this.#put(
      `ENTITY#${entityId}`,
      `#USAGE#${resource}#${instant(startMs)}`,
      {
        resource: text(resource),
        window: text('hourly'),
        window_start: text(instant(startMs)),
        rpm: number(counts.rpm),
        total_events: number(counts.total_events),
      },
      { entity_id: text(entityId), GSI2PK: text(`${this.#prefix}RESOURCE#${resource}`), ttl: number(2_000_000_000) },
    );
  }

  #audit(entityId: string, at: number): void {
    this.audits += 1;
    this.#put(`AUDIT#${entityId}`, `#AUDIT#01J${String(at).padStart(23, '0')}`, {
      event_id: text(`01J${String(at).padStart(23, '0')}`),
      timestamp: text(instant(NOW_MS - at * 1_000)),
      action: text('limits_set'),
      principal: at % 2 === 0 ? text('alice') : { NULL: true },
      resource: { NULL: true },
      details: { M: { limits: { L: [text('rpm')] } } },
    });
  }

  /** Half of the oldest records keep their fields in a map. */
  #put(pk: string, sk: string, fields: Item, index: Item = {}): void {
    const nested = this.#layout === 'per-limit' && sk !== '#VERSION' && this.#random.whole(0, 1) === 0;
    const all = nested ? { data: { M: fields } } : fields;
    this.items.push({ PK: text(`${this.#prefix}${pk}`), SK: text(sk), ...all, ...index });
  }
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function printed({ name, capacity, burst, periodSec }: OldLimit): string {
  return `${name}:${capacity}/${periodSec}sec${burst === capacity ? '' : `:${burst}`}`;
}
