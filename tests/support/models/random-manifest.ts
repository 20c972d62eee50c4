import fc from 'fast-check';
import type { ManifestData, ManifestEntity, ManifestLimits } from '../../../src/core/manifest/manifest.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { Limit } from '../../../src/core/limit.js';

/** Names with a meaning in JavaScript, in paths and in YAML are legal ids. */
const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', '__proto__', 'constructor', 'a.b', '1', 'null', 'x|"y', '~', '[0]'];
const RESOURCES = ['gpt-4', 'constructor', 'arn:aws:bedrock/x', '7'];

const MAX_LEVELS = 8;

const amount = fc.integer({ min: 0, max: 9 });

function limitNamed(name: string): fc.Arbitrary<string> {
  const cost = fc.option(amount, { nil: undefined });
  const rate = fc.record({
    amount: fc.integer({ min: 1, max: 9 }),
    burst: amount,
    periodMs: fc.constantFrom(977, 60_000),
    cost,
  });
  return fc.oneof(
    fc.record({ amount, cost }).map((slots) => String(Limit.concurrent(name, slots.amount, costOf(slots.cost)))),
    cost.map((price) => String(Limit.unlimited(name, costOf(price)))),
    rate.map(({ amount: refillAmount, burst: capacity, periodMs: refillPeriodMs, cost: given }) =>
      String(Limit.custom(name, { refillAmount, capacity, refillPeriodMs, ...costOf(given) })),
    ),
  );
}

function costOf(cost: number | undefined): { readonly cost?: number } {
  return cost === undefined ? {} : { cost };
}

const limitTexts = fc
  .subarray(['rpm', 'tpm', 'slots'], { minLength: 1 })
  .chain((names) => fc.tuple(...names.map((name) => limitNamed(name))));

const level: fc.Arbitrary<ManifestLimits> = limitTexts.map((limits) => ({ limits }));

function someOf<T>(names: readonly string[], value: fc.Arbitrary<T>, minLength = 0): fc.Arbitrary<Record<string, T>> {
  return fc
    .subarray([...names], { minLength })
    .chain((chosen) => fc.tuple(...chosen.map((name) => value.map((item) => [name, item] as const))))
    .map((entries) => Object.fromEntries(entries));
}

const metadata = fc
  .dictionary(fc.constantFrom('tier', '__proto__', 'constructor', ''), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

const entity: fc.Arbitrary<ManifestEntity | null> = fc.option(
  fc.record(
    {
      name: fc.constantFrom('Ann', '', 'Zoë "x"\n'),
      cascade: fc.boolean(),
      metadata,
      paused: fc.oneof(
        fc.constant<false>(false),
        fc.record({ reason: fc.constantFrom('leaked', 'Zoë "x"') }),
        fc.record({
          reason: fc.constant('unpaid'),
          until: fc.constantFrom('2020-01-31T10:00Z', '2031-01-31T10:00:00.5Z'),
        }),
      ),
      default: level,
      resources: someOf(RESOURCES, level, 1),
    },
    { requiredKeys: [] },
  ),
  { freq: 6 },
);

/** Trees of at most 8 levels. Some parents may exist only in the store. */
const entities: fc.Arbitrary<Record<string, ManifestEntity | null>> = fc
  .tuple(someOf(IDS, entity), fc.array(fc.nat(), { minLength: IDS.length, maxLength: IDS.length }), fc.boolean())
  .map(([chosen, draws, isClosed]) => {
    const ids = Object.keys(chosen);
    const depths = new Map<string, number>();
    const withParents = ids.map((id, at) => {
      const candidates = isClosed
        ? ids.slice(0, at)
        : [...ids.slice(0, at), ...IDS.filter((name) => !ids.includes(name))];
      const draw = draws[at] ?? 0;
      const parent = draw % 3 === 0 ? undefined : candidates[draw % Math.max(1, candidates.length)];
      const depth = parent === undefined ? 1 : (depths.get(parent) ?? 1) + 1;
      const fits = parent !== undefined && depth <= MAX_LEVELS;
      depths.set(id, fits ? depth : 1);
      return [id, fits ? { ...chosen[id], parent } : chosen[id]] as const;
    });
    return Object.fromEntries(withParents) as Record<string, ManifestEntity | null>;
  });

export const manifestData: fc.Arbitrary<ManifestData> = fc.record(
  {
    namespace: fc.constant('default'),
    system: fc.oneof(
      fc.record({ limits: limitTexts }),
      fc.record({ onUnavailable: fc.constantFrom('block', 'allow', 'local') }),
      fc.record({ limits: limitTexts, onUnavailable: fc.constantFrom('block', 'allow', 'local') }),
    ),
    resources: someOf(RESOURCES, level),
    entities,
  },
  { requiredKeys: ['namespace'] },
);

/** A manual change, which a store may refuse. */
export type Deed = (limiter: RateLimiter) => Promise<unknown>;

const id = fc.constantFrom(...IDS);
const resource = fc.constantFrom(...RESOURCES);
const limits = limitTexts.map((texts) => texts.map((text) => Limit.parse(text)));
const record = fc.record(
  { name: fc.constantFrom('By hand', 'Ann'), parentId: id, cascade: fc.boolean(), metadata },
  { requiredKeys: [] },
);

const deed: fc.Arbitrary<Deed> = fc.oneof(
  id.map(
    (given): Deed =>
      (limiter) =>
        limiter.pause({ entityId: given, forMs: 'forever', reason: 'by hand' }),
  ),
  id.map(
    (given): Deed =>
      (limiter) =>
        limiter.resume({ entityId: given }),
  ),
  fc.tuple(id, record).map(
    ([given, fields]): Deed =>
      ({ entities: store }) =>
        store.create({ id: given, ...fields }),
  ),
  fc.tuple(id, record).map(
    ([given, fields]): Deed =>
      ({ entities: store }) =>
        store.update(given, fields),
  ),
  id.map(
    (given): Deed =>
      ({ entities: store }) =>
        store.update(given, { parentId: null, metadata: {} }),
  ),
  id.map(
    (given): Deed =>
      ({ entities: store }) =>
        store.delete(given),
  ),
  limits.map(
    (given): Deed =>
      ({ config }) =>
        config.setSystem({ limits: given }),
  ),
  fc.constantFrom('block', 'local').map(
    (onUnavailable): Deed =>
      ({ config }) =>
        config.setSystem({ onUnavailable }),
  ),
  fc.tuple(resource, limits).map(
    ([on, given]): Deed =>
      ({ config }) =>
        config.setResource(on, { limits: given }),
  ),
  fc.tuple(id, limits).map(
    ([of, given]): Deed =>
      ({ config }) =>
        config.setEntityDefault(of, { limits: given }),
  ),
  fc.tuple(id, resource, limits).map(
    ([of, on, given]): Deed =>
      ({ config }) =>
        config.setEntity(of, on, { limits: given }),
  ),
  fc.tuple(id, resource).map(
    ([of, on]): Deed =>
      ({ config }) =>
        config.delete({ entityId: of, resource: on }),
  ),
  id.map(
    (of): Deed =>
      ({ config }) =>
        config.delete({ entityId: of }),
  ),
  fc.constant<Deed>(({ config }) => config.delete('system')),
);

export const manualChanges = fc.array(deed, { maxLength: 25 });

/** Makes the changes. Refused changes are ignored. */
export async function perform(limiter: RateLimiter, all: readonly Deed[]): Promise<void> {
  for (const one of all) await one(limiter).catch(() => {});
}
