import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const PAGE = readText('docs/from-the-papers.md');

const STATE = /^(?:done|later|not: \S.*)$/;

const PATH = /`((?:src|docs|tests|tools|bench|examples)\/[^`\s]*)`/g;

interface Row {
  readonly document: string;
  readonly section: string;
  readonly element: string;
  readonly here: string;
  readonly state: string;
}

const ROWS = rowsOf(PAGE);

/** The elements that the part on each document must name. */
const MUST_HAVE: Readonly<Record<string, readonly string[]>> = {
  'zae-limiter architecture guide': list(`
    Entity metadata, Bucket (v0.9.0+), Entity config, Resource config, System config, Usage snapshot, System version,
    Audit events, Namespace forward, Namespace reverse, GSI1, GSI2, GSI3, GSI4,
    get entity, get bucket (specific shard), get buckets (all resources), batch get buckets, get children,
    resource capacity, get version, get audit events, get usage snapshots, get system config, get resource config,
    get entity config, list entities with custom limits, namespace forward lookup, namespace reverse lookup,
    list all items in namespace,
    pk_system, pk_resource, pk_entity, pk_bucket, sk_state(), sk_config(), sk_config(resource), sk_namespace, sk_nsid,
    gsi3_pk_entity, gsi3_sk_bucket, parse_bucket_pk, $SYSTEM, $RESOURCE:,
    refill_bucket(), try_consume(), force_consume(), calculate_retry_after(), calculate_available(),
    build_limit_status(), would_refill_satisfy(), tokens_to_add, time_used_ms, new_last_refill, retry_seconds,
    _commit_initial(), _commit_adjustments(), _rollback(), transact_write(), write_each(), speculative_consume(),
    _compensate_speculative(), _try_parent_only_acquire(), _MAX_SHARD_RETRIES, build_composite_create, _entity_cache,
    ALL_OLD, ALL_NEW, try_refill_bucket(), aggregate_bucket_states(), try_proactive_shard(), propagate_shard_count(),
    resolve_limits(), invalidate_config_cache(), get_cache_stats(), config_cache_ttl, purge_namespace(),
    __init__.py, models.py, exceptions.py, naming.py, bucket.py, schema.py, repository_protocol.py, repository.py,
    config_cache.py, lease.py, limiter.py, local.py, cli.py, version.py, migrations/, visualization/,
    stack_manager.py, lambda_builder.py, discovery.py, cfn_template.yaml, handler.py, processor.py, archiver.py,
    command \`deploy\`, command \`delete\`, command \`status\`, command \`list\`, command \`local\`,
    decision 1:, decision 2:, decision 3:, decision 4:, decision 5:, decision 6:, decision 7:, decision 8:, decision 9:,
    decision 10:`),
  'ADR-114': list(`
    b_{limit_name}_{field}, \`tk\`, \`cp\`, \`ra\`, \`rp\`, \`tc\`, GSI2SK, alternative: separate items,
    alternative: merge META, alternative: nested map`),
  'ADR-115': list(`
    write path Create, write path Normal, write path Retry, write path Adjust, effective tokens,
    alternative: PutItem with a version, alternative: per-limit refill timestamps, alternative: ADD without a lock`),
  'Composite-bucket-items design': list(`
    tokens_milli, capacity_milli, burst_milli, refill_amount_milli, refill_period_ms, total_consumed_milli,
    last_refill_ms, Create:, Normal:, Retry:, Adjust up, Adjust down, ConsumptionDelta, extract_deltas,
    edge: adding limits, edge: removing limits, migration 1, migration 2, migration 3, migration 4, migration 5`),
  'Sluice architecture': list(`
    SLUICE_LEASE_TTL, SLUICE_MAX_RETRIES, SLUICE_TABLE_NAME, SLUICE_ENDPOINT_URL, GRANTED / RETRY_IN,
    vendor_dimension, \`capacity\`, \`tokens\`, \`refill_rate\`, \`last_refill_at\`, cost_per_call, limit_type,
    \`version\`, \`requests\`, \`concurrent\`, step 1:, step 2:, step 3:, step 4:, step 5:, slot(), WithSlot(),
    lifecycle 1, lifecycle 2, lifecycle 3, lifecycle 4, lifecycle 5, sluice-reconciler-{env}, EventBridge,
    environment sandbox, environment pre, environment prod, task sandbox:start, task infra:apply`),
};

test('each row has an element, a place and a state from the vocabulary', () => {
  expect(ROWS.length).toBeGreaterThan(100);
  const bad = ROWS.filter(({ element, here, state }) => element === '' || here === '' || !STATE.test(state));
  expect(bad).toEqual([]);
});

test('no section names an element twice', () => {
  const seen = ROWS.map(({ document, section, element }) => [document, section, element].join(' > '));
  expect(seen.filter((element, at) => seen.indexOf(element) !== at)).toEqual([]);
});

test('each path exists, unless the state of its row is later', () => {
  const missing = ROWS.filter(({ state }) => state !== 'later').flatMap((row) =>
    pathsOf(`${row.here} ${row.state}`)
      .filter((path) => !exists(path))
      .map((path) => `${row.element}: ${path}`),
  );
  expect(missing).toEqual([]);
});

test('each path outside the tables, and on the pages of decisions and stores, exists', () => {
  const prose = PAGE.split('\n').filter((line) => !line.startsWith('|'));
  const pages = ['docs/adr/', 'docs/backends/'].flatMap((folder) =>
    readdirSync(fileURLToPath(new URL(folder, ROOT))).map((name) => readText(folder + name)),
  );
  const missing = pathsOf([...prose, ...pages].join('\n')).filter((path) => !exists(path));
  expect(missing).toEqual([]);
});

test('the list of decisions has each decision', () => {
  const index = readText('docs/adr/README.md');
  const pages = readdirSync(fileURLToPath(new URL('docs/adr/', ROOT))).filter((name) => name !== 'README.md');
  expect(pages.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});

test('a row whose state is done names a file', () => {
  const unnamed = ROWS.filter(({ here, state }) => state === 'done' && pathsOf(here).length === 0);
  expect(unnamed).toEqual([]);
});

test.each(Object.entries(MUST_HAVE))('the part on %s has every required element', (title, elements) => {
  const rows = ROWS.filter(({ document }) => document.includes(title));
  expect(elements.filter((name) => !rows.some(({ element }) => element.includes(name)))).toEqual([]);
});

function list(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim());
}

/** The rows of all tables, each with the headings above it. */
function rowsOf(markdown: string): readonly Row[] {
  const rows: Row[] = [];
  let document = '';
  let section = '';
  for (const line of markdown.split('\n')) {
    if (line.startsWith('## ')) document = line.slice(3);
    if (line.startsWith('### ')) section = line.slice(4);
    if (!line.startsWith('| ') || line === '| element | here | state |') continue;
    // A stray separator becomes part of the state, which is then not a legal one.
    const [element = '', here = '', ...state] = line.slice(1, -1).split('|');
    rows.push({ document, section, element: element.trim(), here: here.trim(), state: state.join('|').trim() });
  }
  return rows;
}

function pathsOf(text: string): readonly string[] {
  return [...text.matchAll(PATH)].map(([, path = '']) => path);
}

function exists(path: string): boolean {
  return existsSync(fileURLToPath(new URL(path, ROOT)));
}

function readText(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8');
}
