import {
  anything,
  count,
  exactly,
  flag,
  instant,
  limit,
  listOf,
  mapOf,
  nullable,
  number,
  record,
  type Shape,
  text,
} from './shape.js';
import { migrated, STACK_SHAPES } from './cli-stack-shapes.js';

const page = (item: Shape): Shape => record({ items: listOf(item), next: nullable(text) });

const pause = { until: nullable(instant), reason: text };
const pausedBy = record({ entityId: text, resource: nullable(text), ...pause });
const entity = record({
  id: text,
  name: nullable(text),
  parentId: nullable(text),
  cascade: flag,
  metadata: mapOf(anything),
  createdAt: instant,
  version: count,
  paused: nullable(record(pause)),
});
const resource = record({ resource: text, limits: listOf(limit) });
const entityView = record({
  id: text,
  entity: nullable(entity),
  defaultLimits: listOf(limit),
  resources: listOf(resource),
});
const policy = nullable(exactly('block', 'allow', 'local'));
const system = record({ limits: listOf(limit), onUnavailable: policy });
const deleted = record({ deleted: flag });
const namespaceFields = { id: text, name: text, status: exactly('active', 'deleted', 'purging'), createdAt: instant };
const namespace = record(namespaceFields);
const window = exactly('hourly', 'daily', 'monthly');
const source = exactly('entity', 'entity_default', 'resource', 'system');
const bucket = record({
  entityId: text,
  resource: text,
  limits: listOf(record({ limit, available: nullable(count), consumed: count })),
  holders: count,
  acquires: count,
  expired: count,
  paused: nullable(record(pause)),
});
const charge = record({
  entityId: text,
  resource: text,
  amounts: mapOf(count),
  id: nullable(text),
  available: mapOf(nullable(number)),
});
const acquire = record({
  granted: flag,
  dryRun: flag,
  entityId: text,
  resource: text,
  reason: nullable(exactly('exhausted', 'contended', 'impossible', 'paused')),
  retryAfterMs: nullable(count),
  decidedBy: exactly('store', 'deny-cache', 'fallback', 'open'),
  paused: nullable(pausedBy),
  lease: nullable(record({ id: text, state: exactly('committed', 'held'), expiresAt: nullable(instant) })),
  levels: listOf(
    record({
      entityId: text,
      configSource: nullable(exactly('call', 'entity', 'entity_default', 'resource', 'system')),
      limits: listOf(
        record({
          name: text,
          limit,
          asked: nullable(count),
          before: nullable(count),
          after: nullable(count),
          exceeded: flag,
          retryAfterMs: nullable(count),
        }),
      ),
    }),
  ),
});

const target: Shape = (value, place) => {
  const { kind } = (value ?? {}) as { kind?: string };
  const shapes: Record<string, Shape> = {
    system: record({ kind: text }),
    resource: record({ kind: text, resource: text }),
    record: record({ kind: text, entityId: text }),
    entity_default: record({ kind: text, entityId: text }),
    entity: record({ kind: text, entityId: text, resource: text }),
  };
  return shapes[kind ?? '']?.(value, place) ?? [`${place}.kind: not in the shape`];
};
const fields = mapOf(anything);
const limitsPlan = record({
  changes: listOf(
    record({
      action: exactly('create', 'update', 'delete'),
      target,
      before: nullable(fields),
      after: nullable(fields),
    }),
  ),
  drift: listOf(record({ target, applied: fields, live: nullable(fields) })),
  unchanged: count,
});
/** Its fields are optional: it is a limits file. */
const limitsFile: Shape = (value, place) =>
  record({ namespace: text, system: fields, resources: fields, entities: fields })(
    { system: {}, resources: {}, entities: {}, ...(value as object) },
    place,
  );

const tokenFields = {
  name: text,
  role: exactly('app', 'admin'),
  namespace: text,
  entityPrefix: nullable(text),
  ownLimits: flag,
};

/**
 * The JSON of each command by docs/reference/cli-json.md, written independently of the types in `src/cli/commands/`, to
 * check them.
 */
export const CLI_SHAPES: Readonly<Record<string, Shape>> = {
  ...STACK_SHAPES,
  serve: record({ url: text, dashboard: nullable(text), store: text, namespace: text, tokens: count }),
  'token create': record({ ...tokenFields, file: text, secret: text }),
  'token list': record({ file: text, tokens: listOf(record(tokenFields)) }),
  'token revoke': record({ file: text, revoked: text }),
  acquire,
  'audit list': page(
    record({
      id: text,
      at: instant,
      principal: nullable(text),
      action: text,
      subject: text,
      before: anything,
      after: anything,
    }),
  ),
  'bucket list': page(bucket),
  'bucket reset': record({ reset: flag }),
  charge,
  credit: charge,
  'bucket show': record({ bucket: nullable(bucket) }),
  capacity: record({
    resource: text,
    limits: listOf(record({ name: text, capacity: count, available: count, entities: count })),
  }),
  check: record({ ok: exactly(true), store: text, latencyMs: number, namespace: text, namespaceId: text }),
  completion: record({ shell: exactly('bash', 'zsh', 'fish'), script: text }),
  'config list': page(
    record({
      source,
      entityId: nullable(text),
      resource: nullable(text),
      limits: listOf(limit),
      onUnavailable: policy,
    }),
  ),
  'config show': record({
    entityId: text,
    resource: text,
    levels: listOf(record({ source, limits: listOf(limit) })),
    effective: nullable(listOf(record({ entityId: text, configSource: nullable(source), limits: listOf(limit) }))),
    onUnavailable: exactly('block', 'allow', 'local'),
  }),
  'entity children': page(entity),
  'entity create': entity,
  'entity delete': deleted,
  'entity list': page(entity),
  'entity set': entityView,
  'entity show': entityView,
  'leases list': page(
    record({
      id: text,
      entityId: text,
      resource: text,
      amounts: mapOf(count),
      caller: nullable(text),
      acquiredAt: nullable(instant),
      expiresAt: instant,
      expired: flag,
      portable: flag,
    }),
  ),
  'leases release': record({ released: flag }),
  'limits apply': limitsPlan,
  'limits diff': limitsPlan,
  'limits export': limitsFile,
  'limits plan': limitsPlan,
  'local down': record({ pid: nullable(count), purged: flag, data: nullable(text) }),
  'local status': record({
    running: flag,
    answers: flag,
    engine: nullable(exactly('dynoxide', 'dynamodb-local')),
    pid: nullable(count),
    port: nullable(count),
    url: nullable(text),
    data: nullable(text),
    log: nullable(text),
    startedAt: nullable(instant),
  }),
  'local up': record({
    started: flag,
    engine: exactly('dynoxide', 'dynamodb-local'),
    pid: count,
    port: count,
    url: text,
    data: text,
    log: text,
    startedAt: instant,
    seed: nullable(limitsPlan),
  }),
  migrate: record({ ...migrated, dryRun: flag }),
  'namespace create': record({ ...namespaceFields, created: flag }),
  'namespace delete': namespace,
  'namespace list': page(namespace),
  'namespace orphans': page(namespace),
  'namespace purge': record({ removed: count }),
  'namespace recover': namespace,
  'namespace show': namespace,
  pause: pausedBy,
  reconcile: record({
    namespaces: count,
    visited: count,
    reclaimed: count,
    healed: count,
    merged: count,
    unmarked: count,
    busy: count,
    failed: count,
    failures: listOf(record({ namespace: text, bucket: text, reason: text })),
    complete: flag,
    durationMs: count,
  }),
  resume: record({ resumed: flag }),
  'resource delete': deleted,
  'resource entities': page(text),
  'resource list': page(resource),
  'resource set': resource,
  'resource show': resource,
  'system delete': deleted,
  'system set': system,
  'system show': system,
  tour: record({ steps: listOf(record({ title: text, lines: listOf(text) })) }),
  template: record({
    AWSTemplateFormatVersion: exactly('2010-09-09'),
    Description: text,
    Metadata: fields,
    Parameters: fields,
    Conditions: fields,
    Resources: fields,
    Outputs: fields,
  }),
  'usage list': page(
    record({
      entityId: text,
      resource: text,
      window,
      windowStart: instant,
      windowEnd: instant,
      tokens: mapOf(count),
      acquires: count,
      expired: count,
    }),
  ),
  'usage plot': record({
    entityId: nullable(text),
    resource: text,
    window,
    series: listOf(record({ name: text, points: listOf(record({ windowStart: instant, value: count })) })),
  }),
  'usage rebuild': record({
    entityId: text,
    resource: text,
    added: mapOf(number),
    acquires: count,
    expired: count,
  }),
  'usage summary': record({
    entityId: nullable(text),
    resource: text,
    window,
    from: nullable(instant),
    to: nullable(instant),
    count,
    total: mapOf(count),
    average: mapOf(number),
    acquires: count,
    expired: count,
  }),
  version: record({ version: text, node: text }),
  worker: record({ records: count, poison: count, archived: count, splits: count, trimmed: listOf(text) }),
};

/** Commands that need or create a DynamoDB table. They are tested with an engine. */
export const ON_DYNAMODB: readonly string[] = [
  'local down',
  'local status',
  'local up',
  'migrate',
  'usage rebuild',
  'worker',
];
