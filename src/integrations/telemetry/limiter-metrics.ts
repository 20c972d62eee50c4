import type { LimiterEvent } from '../../limiter/events/limiter-event.js';
import { Counter, Gauge, Histogram } from './prometheus.js';

/** From a decision in memory to one that waited, in seconds. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

type EventOf<Type extends LimiterEvent['type']> = Extract<LimiterEvent, { readonly type: Type }>;

/**
 * Counts the events of a limiter, and prints them as Prometheus text. Pass `onEvent` to the limiter. Entities are no labels:
 * there may be millions of them.
 */
export class LimiterMetrics {
  readonly #decisions = new Counter('headgate_decisions_total', 'Decisions, one for each call.', [
    'outcome',
    'reason',
    'decided_by',
    'resource',
  ]);
  readonly #verdicts = new Counter('headgate_limit_verdicts_total', 'Limits that were asked, by level.', [
    'limit',
    'level',
    'exceeded',
  ]);
  readonly #durations = new Histogram(
    'headgate_decision_duration_seconds',
    'From the call to the decision, including a wait for tokens.',
    ['outcome'],
    SECONDS,
  );
  readonly #tokens = new Counter('headgate_tokens_total', 'Tokens that were reserved, settled or refunded.', [
    'state',
    'limit',
    'resource',
  ]);
  readonly #leases = new Counter('headgate_leases_ended_total', 'Leases that ended.', ['how']);
  readonly #isOut = new Gauge('headgate_store_outage', '1 while the store does not answer.');
  readonly #changes = new Counter('headgate_changes_total', 'Changes of config, pauses, splits and merges.', ['type']);

  constructor() {
    this.#isOut.set(0);
  }

  readonly onEvent = (event: LimiterEvent): void => {
    switch (event.type) {
      case 'decision':
        this.#countDecision(event);
        return;
      case 'lease-end':
        this.#countEnd(event);
        return;
      case 'outage-begin':
      case 'outage-end':
        this.#isOut.set(event.type === 'outage-begin' ? 1 : 0);
        return;
      case 'config-change':
      case 'pause':
      case 'resume':
      case 'split':
      case 'merge':
        this.#changes.add(1, event.type);
    }
  };

  #countDecision(event: EventOf<'decision'>): void {
    const { granted, reason, decidedBy, resource, consume, violations, entityId, durationMs } = event;
    const outcome = granted ? 'granted' : 'denied';
    this.#decisions.add(1, outcome, reason ?? '', decidedBy, resource);
    this.#durations.observe(durationMs / 1000, outcome);
    for (const violation of violations) {
      this.#verdicts.add(1, violation.limit, violation.entityId === entityId ? 'entity' : 'parent', 'true');
    }
    if (!granted) return;
    for (const [limit, amount] of Object.entries(consume)) {
      this.#verdicts.add(1, limit, 'entity', 'false');
      this.#tokens.add(amount, 'reserved', limit, resource);
    }
  }

  #countEnd({ how, amounts, resource }: EventOf<'lease-end'>): void {
    this.#leases.add(1, how);
    const state = { committed: 'settled', 'rolled-back': 'refunded', expired: 'unsettled' }[how];
    for (const [limit, amount] of Object.entries(amounts)) this.#tokens.add(amount, state, limit, resource);
  }

  /** Prometheus text, version 0.0.4. */
  render(): string {
    const metrics = [
      this.#decisions,
      this.#verdicts,
      this.#durations,
      this.#tokens,
      this.#leases,
      this.#isOut,
      this.#changes,
    ];
    return metrics.map((metric) => metric.render()).join('');
  }
}
