import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { BoundedNames } from './bounded-names.js';
import { HeldSlots } from './held-slots.js';
import type { CounterKey, GaugeKey, HistogramKey } from './metric-table.js';

/** Where the counts go. Labels are the values of the metric's labels, in the order of the table; '' stands for none. */
export interface MetricSink {
  add(key: CounterKey, amount: number, labels: readonly string[]): void;
  observe(key: HistogramKey, value: number, labels: readonly string[]): void;
}

/** The value of a gauge when it is read. */
export interface GaugeReading {
  readonly key: GaugeKey;
  readonly value: number;
  readonly labels: readonly string[];
}

type EventOf<Type extends LimiterEvent['type']> = Extract<LimiterEvent, { readonly type: Type }>;

/** Names come from callers. Beyond these numbers they are counted together, as `other`. */
const MAX_RESOURCES = 200;
const MAX_LIMITS = 50;
const MAX_DIMENSIONS = 20;

const STATES = { committed: 'settled', 'rolled-back': 'refunded', expired: 'unsettled' } as const;

/** Turns the events of a limiter into counts: the one source of all metrics. */
export class EventCounter {
  readonly #sink: MetricSink;
  readonly #resources = new BoundedNames(MAX_RESOURCES);
  readonly #limits = new BoundedNames(MAX_LIMITS);
  readonly #dimensions = new BoundedNames(MAX_DIMENSIONS);
  readonly #slots: HeldSlots;
  #isOut = false;

  /** `now`: the time of the limiter's clock, in milliseconds. */
  constructor(sink: MetricSink, now: () => number = Date.now) {
    this.#sink = sink;
    this.#slots = new HeldSlots(now);
  }

  readonly onEvent = (event: LimiterEvent): void => {
    switch (event.type) {
      case 'decision':
        this.#countDecision(event);
        return;
      case 'lease-end':
        this.#countEnd(event);
        return;
      case 'slots':
        this.#slots.note(event, this.#resources.bound(event.resource), (name) => this.#limits.bound(name));
        return;
      case 'provider-throttle':
        this.#sink.add('throttles', 1, [
          event.dimension === null ? '' : this.#dimensions.bound(event.dimension),
          this.#resources.bound(event.resource),
        ]);
        return;
      case 'outage-begin':
      case 'outage-end':
        this.#isOut = event.type === 'outage-begin';
        return;
      case 'config-change':
      case 'pause':
      case 'resume':
      case 'split':
      case 'merge':
        this.#sink.add('changes', 1, [event.type]);
    }
  };

  /** The gauges as they are now. */
  readGauges(): readonly GaugeReading[] {
    const slots = this.#slots.read().map((reading) => ({ key: 'slots' as const, ...reading }));
    return [...slots, { key: 'outage', value: this.#isOut ? 1 : 0, labels: [] }];
  }

  #countDecision(event: EventOf<'decision'>): void {
    const { granted, reason, decidedBy, limits, violations, tokens, entityId, durationMs, waitedMs } = event;
    const outcome = granted ? 'granted' : 'denied';
    const resource = this.#resources.bound(event.resource);
    this.#sink.add('decisions', 1, [outcome, reason ?? '', decidedBy, resource]);
    this.#sink.observe('durations', durationMs / 1000, [outcome]);
    if (waitedMs !== undefined) this.#sink.observe('waits', waitedMs / 1000, [outcome]);
    for (const asked of limits) {
      const level = asked.entityId === entityId ? 'entity' : 'parent';
      // A shadow may be exceeded, and refuses nothing.
      const refused = violations.some((one) => one.limit === asked.limit && one.entityId === asked.entityId);
      this.#sink.add('verdicts', 1, [this.#limits.bound(asked.limit), level, String(asked.exceeded), String(refused)]);
    }
    this.#countTokens('reserved', tokens, resource);
  }

  #countEnd({ how, tokens, resource }: EventOf<'lease-end'>): void {
    this.#sink.add('leases', 1, [how]);
    this.#countTokens(STATES[how], tokens, this.#resources.bound(resource));
  }

  #countTokens(state: string, tokens: Readonly<Record<string, number>>, resource: string): void {
    for (const [limit, amount] of Object.entries(tokens)) {
      this.#sink.add('tokens', amount, [state, this.#limits.bound(limit), resource]);
    }
  }
}
