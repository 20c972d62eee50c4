import { type Awaitable, type Call, type ManagedRecord, MAX_READ, type Page, type PageRequest } from '../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../core/config/config.js';
import { type LiveState, type ApplyPlan, planChanges } from '../../core/manifest/diff.js';
import { ValidationError } from '../../core/errors.js';
import { plainObject } from '../../core/manifest/manifest-fields.js';
import { buildManagedKey, parseManagedKey } from '../../core/manifest/managed.js';
import { type Fields, fieldsOfManifest, type LiveRecord } from '../../core/manifest/managed-fields.js';
import { type Manifest, readManifest } from '../../core/manifest/manifest.js';
import { callStore, type Context } from '../context.js';
import type { ManifestPlan } from './manifest-types.js';

/** Compares the manifest with the objects that it names or owns. */
export async function makePlan(context: Context, data: unknown): Promise<ApplyPlan> {
  const wanted = readManifest(data);
  if (wanted.namespace !== context.namespace) {
    throw new ValidationError('namespace', `${context.namespace}, the namespace that is open`, wanted.namespace);
  }
  const owned = await readOwned(context);
  return planChanges({ wanted, owned, live: await readLive(context, wanted, owned), nowMs: context.clock.now() });
}

export function viewOf({ steps, drift, unchanged }: ApplyPlan): ManifestPlan {
  return { changes: steps.map(({ change }) => change), drift, unchanged };
}

async function readOwned(context: Context): Promise<ReadonlyMap<string, Fields>> {
  const marks = await readPages(context, 'reading the marks', (call, page) => context.backend.managed.list(call, page));
  return new Map(marks.map((mark) => [mark.key, fieldsOfMark(mark)]));
}

export function fieldsOfMark({ value }: ManagedRecord): Fields {
  return plainObject(value) ? value : {};
}

async function readLive(context: Context, manifest: Manifest, owned: ReadonlyMap<string, Fields>): Promise<LiveState> {
  const wanted = fieldsOfManifest(manifest);
  const targets = [...new Set([...wanted.keys(), ...owned.keys()])].flatMap((key) => parseManagedKey(key) ?? []);
  const levels = targets.flatMap((target) => (target.kind === 'record' ? [] : [target]));
  const ids = targets.flatMap((target) => (target.kind === 'record' ? [target.entityId] : []));
  const records = await readRecords(context, ids, wanted);
  const mayMove = ids.filter((id) => {
    const key = buildManagedKey({ kind: 'record', entityId: id });
    const [wish, mark, live] = [wanted.get(key), owned.get(key), records.get(id)];
    const parent = wish?.['parent'] ?? (mark?.['parent'] === undefined ? live?.parentId : null);
    return live !== undefined && (wish === undefined || parent !== live.parentId);
  });
  await addDescendants(context, mayMove, records);
  return { configs: await readConfigs(context, levels), records };
}

async function readConfigs(
  context: Context,
  levels: readonly ConfigLevel[],
): Promise<ReadonlyMap<string, StoredConfig>> {
  const configs = new Map<string, StoredConfig>();
  for (const some of chunks(levels)) {
    const found = await callStore(context, 'reading configs', (call) => context.backend.config.readMany(call, some));
    for (const [at, level] of some.entries()) {
      const config = found[at];
      if (config !== undefined) configs.set(buildManagedKey(level), config);
    }
    await turn();
  }
  return configs;
}

/** The records with all their current and future parents. */
async function readRecords(
  context: Context,
  ids: readonly string[],
  wanted: ReadonlyMap<string, Fields>,
): Promise<Map<string, LiveRecord>> {
  const records = new Map<string, LiveRecord>();
  const seen = new Set<string>();
  const parents = [...wanted.values()].flatMap(({ parent }) => (typeof parent === 'string' ? parent : []));
  for (let next = new Set([...ids, ...parents]); next.size > 0;) {
    const above = new Set<string>();
    for (const some of chunks([...next])) {
      const found = await callStore(context, 'reading entities', (call) =>
        context.backend.entities.readMany(call, some),
      );
      for (const record of found) {
        if (record === undefined) continue;
        records.set(record.id, record);
        if (record.parentId !== null) above.add(record.parentId);
      }
      for (const id of some) seen.add(id);
      await turn();
    }
    next = new Set([...above].filter((id) => !seen.has(id)));
  }
  return records;
}

async function addDescendants(
  context: Context,
  ids: readonly string[],
  records: Map<string, LiveRecord>,
): Promise<void> {
  const seen = new Set<string>();
  for (let level = ids; level.length > 0;) {
    const below: string[] = [];
    for (const id of level) {
      if (seen.has(id)) continue;
      seen.add(id);
      const children = await readPages(context, 'reading children', (call, page) =>
        context.backend.entities.children(call, id, page),
      );
      for (const child of children) {
        // A record that was read by its id is newer than its copy in an index.
        if (!records.has(child.id)) records.set(child.id, child);
        below.push(child.id);
      }
    }
    level = below;
  }
}

/** The largest page that a store returns. */
const PAGE = 1_000;

export async function readPages<T>(
  context: Context,
  where: string,
  read: (call: Call, page: PageRequest) => Awaitable<Page<T>>,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (let after: string | null = null; ;) {
    const request: PageRequest = { limit: PAGE, after };
    const page: Page<T> = await callStore(context, where, (call) => read(call, request));
    all.push(...page.items);
    if (page.next === null) return all;
    after = page.next;
    await turn();
  }
}

function* chunks<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += MAX_READ) yield items.slice(at, at + MAX_READ);
}

/** Lets other work run: a store that answers synchronously would otherwise block the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
