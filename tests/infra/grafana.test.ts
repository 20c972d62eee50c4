import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { LimiterMetrics } from '../../src/integrations/telemetry/limiter-metrics.js';
import { Limit } from '../../src/core/limit.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { createServer } from '../../src/server/server.js';
import { SECRET } from '../support/server/request-server.js';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const dashboard = JSON.parse(readFileSync(new URL('../../grafana/headgate.json', import.meta.url), 'utf8')) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] };
};

const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** The names and the labels of a text in the format of Prometheus. */
function samplesOf(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const samples = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^(headgate_\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = samples.get(name) ?? new Set<string>();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    samples.set(name, known);
  }
  return samples;
}

/** What `/metrics` has after calls that are granted, denied and wait, ends of leases, pauses and refusals of a provider. */
async function metricsAfterTraffic(): Promise<string> {
  const metrics = new LimiterMetrics();
  const limiter = await RateLimiter.open(memory(), {
    limits: [Limit.perMinute('rpm', 4), Limit.concurrent('slots', 2)],
    leaseSecrets: [SECRET],
    onEvent: metrics.onEvent,
  });
  const server = createServer(limiter, { metrics });
  const call = async (path: string, body?: unknown): Promise<Response> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    return server.fetch(new Request(`http://headgate.test${path}`, init));
  };
  const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 2, slots: 1 } };
  for (const end of ['commit', 'rollback']) {
    const { lease } = (await (await call('/v1/acquire', { ...ask, wait: { timeoutMs: 0 } })).json()) as {
      readonly lease: { readonly token: string };
    };
    await call(`/v1/leases/${end}`, { token: lease.token });
  }
  for (let time = 0; time < 2; time++) await call('/v1/acquire', ask);
  await call('/v1/pause', { entityId: 'user-1', forMs: 60_000, reason: 'test' });
  limiter.noteThrottle({ entityId: 'user-1', resource: 'gpt-4', dimension: 'tokens', retryAfterMs: 1_000 });
  const text = await (await call('/metrics')).text();
  await limiter.close({ leases: 'keep' });
  return text;
}

describe('the Grafana dashboard', () => {
  let samples: ReadonlyMap<string, ReadonlySet<string>>;

  beforeAll(async () => {
    samples = samplesOf(await metricsAfterTraffic());
  });

  test('every metric of the dashboard is exposed by /metrics after traffic', () => {
    const named = new Set(JSON.stringify(dashboard).match(/headgate_\w+/g));
    expect(named.size).toBeGreaterThan(8);
    expect([...named].filter((name) => !samples.has(name))).toEqual([]);
  });

  test('every metric that /metrics exposes is on the dashboard', () => {
    const families = [...samples.keys()].map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));
    expect(families.filter((family) => !expressions.some((expr) => expr.includes(family)))).toEqual([]);
  });

  test('every label that an expression selects or groups by is one of its metric', () => {
    for (const expr of expressions) {
      const metrics = [...expr.matchAll(/headgate_\w+/g)].map(([name]) => name);
      const selected = [...expr.matchAll(/(\w+)(?:=~|=)"/g)].map(([, label = '']) => label);
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/, */));
      const unknown = [...selected, ...grouped].filter(
        (label) => !metrics.every((name) => samples.get(name)?.has(label)),
      );
      expect({ expr, unknown }).toEqual({ expr, unknown: [] });
    }
  });

  test('legends name only labels by which their expression groups', () => {
    for (const { targets } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/, */));
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
        expect(shown.filter((label) => !grouped.includes(label))).toEqual([]);
      }
    }
  });

  test('variables of expressions are defined, and panels have their own ids and places', () => {
    const used = new Set(expressions.flatMap((expr) => [...expr.matchAll(/\$(\w+)/g)].map(([, name = '']) => name)));
    const defined = dashboard.templating.list.map(({ name }) => name);
    expect([...used].filter((name) => !name.startsWith('__') && !defined.includes(name))).toEqual([]);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });
});
