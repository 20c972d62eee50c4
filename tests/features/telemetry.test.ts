import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CloudWatchMetrics } from '../../src/integrations/telemetry/cloudwatch.js';
import { LimiterMetrics } from '../../src/integrations/telemetry/limiter-metrics.js';
import { openTelemetry } from '../../src/integrations/telemetry/opentelemetry.js';
import type { Decision } from '../../src/limiter/acquire/decision.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { isHeadgateError } from '../../src/core/errors.js';
import {
  openMeter,
  readEmf,
  readingKey,
  type Readings,
  readingsOf,
  readPrometheus,
} from '../support/telemetry/readings.js';

const LIMITS = [Limit.perMinute('rpm', 8), Limit.perMinute('tpm', 300), Limit.concurrent('slots', 2)];
const TEAM = [Limit.perMinute('rpm', 10)];

const entity = fc.constantFrom('user-1', 'user-1', 'user-2', 'solo');
const resource = fc.constantFrom('gpt-4', 'gpt-4', 'gpt-5');
const consume = fc.constantFrom<Readonly<Record<string, number>>>(
  { rpm: 1 },
  { rpm: 3, tpm: 100 },
  { rpm: 1, slots: 1 },
  { tpm: 50, slots: 2 },
  { rpm: 9 },
);
const which = fc.nat(20);

/** A step of a history: a call, an operation of one of the open leases, or the passing of time. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('try', 'acquire', 'wait'), entityId: entity, resource, consume }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('commit', 'rollback', 'release', 'extend'), which }) },
  fc.record({ kind: fc.constant('settle'), which, tpm: fc.nat(300) }),
  fc.record({ kind: fc.constant('advance'), ms: fc.constantFrom(100, 2_000, 6_000, 30_000) }),
  fc.record({ kind: fc.constantFrom('pause', 'resume'), entityId: entity }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

interface OpenLease {
  readonly lease: Lease;
  /** What it holds until it is released, as the test knows it. */
  slots: number;
  isLossCounted: boolean;
}

/** Counts what the calls returned, and what their leases said. It does not listen to events. */
class OwnCount {
  readonly entries: (readonly [string, number])[] = [];

  add(name: string, labels: Readonly<Record<string, unknown>>, amount = 1): void {
    this.entries.push([readingKey(name, labels), amount]);
  }

  decision(decision: Decision, ask: { entityId: string; resource: string; consume: Readonly<Record<string, number>> }) {
    const { granted, decidedBy } = decision;
    const outcome = granted ? 'granted' : 'denied';
    const reason = granted ? '' : decision.reason;
    this.add('headgate.decisions', { outcome, reason, decided_by: decidedBy, resource: ask.resource });
    this.add('headgate.decision.duration.count', { outcome });
    if (!granted) return;
    for (const [limit, amount] of Object.entries(ask.consume)) {
      if (limit === 'slots') continue;
      this.add('headgate.tokens', { state: 'reserved', limit, resource: ask.resource }, amount);
    }
  }

  /** On a grant every limit that the ask names had room, at every level that has it. */
  verdicts(decision: Decision, ask: { entityId: string; consume: Readonly<Record<string, number>> }): void {
    const isDenied = !decision.granted && decision.statuses.length > 0;
    if (isDenied) {
      for (const { entityId, limit, exceeded } of decision.statuses) {
        const level = entityId === ask.entityId ? 'entity' : 'parent';
        this.add('headgate.limit.verdicts', { limit: limit.name, level, exceeded, refused: exceeded });
      }
    }
    if (!decision.granted) return;
    for (const limit of Object.keys(ask.consume)) {
      this.add('headgate.limit.verdicts', { limit, level: 'entity', exceeded: false, refused: false });
      if (limit === 'rpm' && ask.entityId !== 'solo') {
        this.add('headgate.limit.verdicts', { limit, level: 'parent', exceeded: false, refused: false });
      }
    }
  }

  end({ lease }: OpenLease, how: Lease['state'], tokens: Readonly<Record<string, number>>): void {
    this.add('headgate.leases.ended', { how });
    const state = { committed: 'settled', 'rolled-back': 'refunded', expired: 'unsettled', open: '' }[how];
    for (const [limit, amount] of Object.entries(tokens)) {
      if (limit !== 'slots') this.add('headgate.tokens', { state, limit, resource: lease.resource }, amount);
    }
  }
}

async function world() {
  const clock = fakeClock();
  const now = (): number => clock.now();
  const lines: string[] = [];
  const prometheus = new LimiterMetrics({ now });
  const emf = new CloudWatchMetrics({ now, write: (line) => lines.push(line) });
  const meter = openMeter();
  const otel = openTelemetry({ meter: meter.meter, now });
  const limiter = await RateLimiter.open('memory:', {
    clock,
    limits: LIMITS,
    onEvent: (event) => {
      prometheus.onEvent(event);
      emf.onEvent(event);
      otel.onEvent(event);
    },
  });
  await limiter.config.setEntityDefault('team', { limits: TEAM });
  await limiter.entities.create({ id: 'team' });
  for (const id of ['user-1', 'user-2']) await limiter.entities.create({ id, parentId: 'team', cascade: true });
  const read = async (): Promise<readonly Readings[]> => {
    emf.flush();
    return [readPrometheus(prometheus.render()), await meter.read(), readEmf(lines)];
  };
  const close = async (): Promise<void> => {
    otel.close();
    await meter.close();
    await limiter.close();
  };
  return { clock, limiter, read, close };
}

type World = Awaited<ReturnType<typeof world>>;

/** Makes the step, and counts it. */
async function take({ limiter, clock }: World, own: OwnCount, open: OpenLease[], made: Step): Promise<void> {
  switch (made.kind) {
    case 'try':
    case 'acquire':
    case 'wait': {
      const { kind, ...ask } = made;
      const asked = {
        ...ask,
        // Without it an ask for rates may take the short way, and its lease has no holder.
        ...(ask.consume['slots'] === undefined ? {} : { leaseTtlMs: 10_000 }),
        ...(kind === 'wait' ? { wait: { timeoutMs: 1_000 } } : {}),
      };
      const deciding = kind === 'acquire' ? acquired(limiter, asked) : limiter.tryAcquire(asked);
      if (kind === 'wait') await clock.advance(1_000);
      const decision = await deciding;
      own.decision(decision, ask);
      own.verdicts(decision, ask);
      if (kind === 'wait')
        own.add('headgate.wait.duration.count', { outcome: decision.granted ? 'granted' : 'denied' });
      if (decision.granted) {
        open.push({ lease: decision.lease, slots: ask.consume['slots'] ?? 0, isLossCounted: false });
      }
      return;
    }
    case 'commit':
    case 'rollback':
    case 'release':
    case 'extend':
    case 'settle':
      return operate(limiter, own, open, made);
    case 'advance':
      await clock.advance(made.ms);
      return;
    case 'pause':
    case 'resume': {
      const { entityId } = made;
      const isChanged =
        made.kind === 'resume'
          ? await limiter.resume({ entityId })
          : (await limiter.pause({ entityId, forMs: 5_000, reason: 'test' })) !== null;
      if (isChanged) own.add('headgate.changes', { type: made.kind });
    }
  }
}

/** The decision of `acquire`, whose grant has no statuses. */
async function acquired(limiter: RateLimiter, ask: Parameters<RateLimiter['acquire']>[0]): Promise<Decision> {
  try {
    return { granted: true, lease: await limiter.acquire(ask), statuses: [], decidedBy: 'store' };
  } catch (error) {
    if (isHeadgateError(error)) return { ...(error as unknown as Decision), granted: false } as Decision;
    throw error;
  }
}

async function operate(
  limiter: RateLimiter,
  own: OwnCount,
  open: OpenLease[],
  made: Extract<Step, { readonly which: number }>,
): Promise<void> {
  const one = open[made.which % Math.max(1, open.length)];
  if (one === undefined) return;
  const { lease } = one;
  const { items } = await limiter.leases.list({ entityId: lease.entityId });
  const isHeld = items.some(({ id }) => id === lease.id);
  const wasReleased = lease.expiresAt === null;
  const before = lease.consumed;
  const total = made.kind === 'settle' ? made.tpm : null;
  if (total === null)
    await lease[made.kind as 'commit']().catch((error: unknown) => expect(isHeadgateError(error)).toBe(true));
  else await lease.settle({ tpm: total });
  // A settle that changes nothing writes nothing. Every other operation of a lease that has slots notices that it is lost.
  const writes = total === null || total !== (before['tpm'] ?? 0);
  if (writes && !wasReleased && !isHeld && !one.isLossCounted) {
    one.isLossCounted = true;
    own.end(one, 'expired', made.kind === 'rollback' ? {} : made.kind === 'settle' ? lease.consumed : before);
  }
  if (made.kind === 'release') one.slots = 0;
  if (made.kind !== 'commit' && made.kind !== 'rollback') return;
  open.splice(open.indexOf(one), 1);
  own.end(one, made.kind === 'commit' ? 'committed' : 'rolled-back', before);
}

test('Prometheus, OpenTelemetry and CloudWatch have the counts of any history of calls and leases, and agree', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const all = await world();
      const { clock, read, close } = all;
      try {
        const [own, open]: [OwnCount, OpenLease[]] = [new OwnCount(), []];
        own.add('headgate.changes', { type: 'config-change' });
        for (const made of steps) await take(all, own, open, made);
        for (const { lease, slots } of open) {
          const isHeld = lease.expiresAt !== null && lease.expiresAt.getTime() > clock.now();
          const labels = { limit: 'slots', resource: lease.resource };
          if (isHeld) own.add('headgate.slots.in_use', labels, slots);
        }
        const [prometheus, otel, emf] = (await read()) as [Readings, Readings, Readings];
        expect(otel).toEqual(prometheus);
        expect(emf).toEqual(prometheus);
        const counts = Object.entries(prometheus).filter(([key]) => !key.includes('.duration.sum'));
        expect(Object.fromEntries(counts)).toEqual(readingsOf(own.entries));
      } finally {
        await close();
      }
    }),
    { numRuns: 100 },
  );
});
