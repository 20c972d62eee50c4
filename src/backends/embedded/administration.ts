import type {
  AdminCall,
  AuditAction,
  BucketRecord,
  BucketToPause,
  ConfigChange,
  ConfigRead,
  EntityChange,
  EntityRecord,
  ManagedMark,
} from '../../backend.js';
import { credit, effectiveTokens, nextBase } from '../../core/bucket/bucket.js';
import { heldSlots } from '../../core/bucket/held-slots.js';
import { countOpen } from '../../core/bucket/portable.js';
import { planConfigChange } from '../../core/config/config-change.js';
import type { ConfigLevel, StoredConfig } from '../../core/config/config.js';
import { BackendUnavailable, EntityExists, EntityNotFound, VersionConflict } from '../../core/errors.js';
import { changedEntity } from '../../core/config/changed-entity.js';
import { missingParent, refuseBadParent, refuseOtherVersion } from '../../core/config/parents.js';
import { auditOfPause, newPausedEntity, refusePaused, withPause } from '../../core/config/paused-records.js';
import { sameJson } from '../../core/manifest/same-json.js';
import { hasBalance, isConsumed } from '../../core/limit-kind.js';
import { fullTokens } from '../../core/limit.js';
import { type Pause, type PauseChange, planPause, samePause } from '../../core/pause.js';
import { type EpochMs, MAX_CHAIN } from '../../core/units.js';
import { type Bucket, copyBucket, createBucket, forgetOpenHolders, move, negated, reclaimExpired } from './bucket.js';
import { EVERYTHING } from './paging.js';
import type { OwnedBucket, Space } from './storage.js';
import { foldBeforeHourEnds } from './usage.js';

/** Writes the audit record in the same transaction as its change. */
function audit(
  space: Space,
  call: AdminCall,
  action: AuditAction,
  subject: string,
  before: unknown,
  after: unknown,
): void {
  const { auditId: id, nowMs: atMs, principal } = call;
  space.addAudit({ id, atMs, principal, action, subject, before, after });
}

/** Makes a change together with its mark. Checks the mark first, because the memory store cannot roll back. */
export function marked<T>(space: Space, mark: ManagedMark | null | undefined, change: () => T): T {
  if (mark === null || mark === undefined) return change();
  const { key, seen } = mark;
  if (seen !== undefined && !sameJson(seen, space.readMark(key)?.value ?? null)) {
    throw new BackendUnavailable(`the mark of ${key} was changed meanwhile`, 'contended');
  }
  const result = change();
  space.writeMark(mark);
  return result;
}

export function readFor(space: Space, entityId: string, resource: string): ConfigRead {
  const bucketPause = space.readBucket(entityId, resource)?.pause ?? null;
  return {
    levels: {
      entity: space.readConfig({ kind: 'entity', entityId, resource }),
      entityDefault: space.readConfig({ kind: 'entity_default', entityId }),
      resource: space.readConfig({ kind: 'resource', resource }),
      system: space.readConfig({ kind: 'system' }),
    },
    entity: space.readEntity(entityId),
    ...(bucketPause === null ? {} : { bucketPause }),
  };
}

export function writeConfig(space: Space, call: AdminCall, level: ConfigLevel, change: ConfigChange): StoredConfig {
  const stored = space.readConfig(level);
  const { config, action, subject, before, after, changesNothing } = planConfigChange(level, stored, change);
  if (changesNothing) return stored ?? { ...config, v: 0 };
  const written = { ...config, v: space.nextSequence() };
  space.writeConfig(level, written);
  audit(space, call, action, subject, before, after);
  return written;
}

export function createEntity(
  space: Space,
  call: AdminCall,
  entity: Omit<EntityRecord, 'createdAtMs' | 'version'>,
): EntityRecord {
  if (space.readEntity(entity.id) !== undefined) throw new EntityExists(entity.id);
  if (entity.parentId !== null) checkParents(space, entity.id, entity.parentId);
  const record = { ...entity, createdAtMs: call.nowMs, version: 1 };
  space.writeEntity(record);
  audit(space, call, 'entity.create', entity.id, null, record);
  return record;
}

export function updateEntity(
  space: Space,
  call: AdminCall,
  id: string,
  change: EntityChange,
  seenVersion: number | null,
): EntityRecord {
  const before = space.readEntity(id);
  if (before === undefined) throw new EntityNotFound(id);
  refuseOtherVersion(before, seenVersion);
  const { pause, ...fields } = change;
  const after = withPause(changedEntity(before, fields), pause);
  if (after.parentId !== null && after.parentId !== before.parentId) {
    checkParents(space, id, after.parentId, heightBelow(space, id));
  }
  space.writeEntity(after);
  audit(space, call, 'entity.update', id, before, after);
  return after;
}

export function pauseEntity(space: Space, call: AdminCall, id: string, wanted: Pause | null): PauseChange {
  const stored = space.readEntity(id);
  const change = planPause(stored?.pause, wanted);
  if (samePause(change.before, change.after)) return change;
  const record = stored ?? newPausedEntity(id, call.nowMs);
  space.writeEntity(withPause({ ...record, version: record.version + 1 }, change.after));
  audit(space, call, ...auditOfPause('entity', id, change));
  return change;
}

export function deleteEntity(space: Space, call: AdminCall, id: string, seenVersion: number | null): void {
  const before = space.readEntity(id);
  if (before === undefined) throw new EntityNotFound(id);
  refuseOtherVersion(before, seenVersion);
  if (seenVersion === null) refusePaused(before, call.nowMs);
  const child = space.entities(id, { limit: 1, after: null }).items[0];
  if (child !== undefined) throw new VersionConflict(id, `it has children, such as ${child.id}`);
  space.deleteEntity(id);
  audit(space, call, 'entity.delete', id, before, null);
}

/** Every parent must exist, and the chain must have no cycle and no more than MAX_CHAIN levels. */
function checkParents(space: Space, id: string, parentId: string, levelsBelow = 0): void {
  const chain = [id];
  for (let next: string | null = parentId; next !== null;) {
    refuseBadParent(chain, next, levelsBelow);
    const parent: EntityRecord | undefined = space.readEntity(next);
    if (parent === undefined) throw missingParent(next);
    chain.push(next);
    next = parent.parentId;
  }
}

/** The number of levels of children below an entity. */
function heightBelow(space: Space, id: string): number {
  let height = 0;
  for (let level = [id]; ; height++) {
    level = level.flatMap((parent) => space.entities(parent, EVERYTHING).items.map((child) => child.id));
    if (level.length === 0 || height >= MAX_CHAIN) return height;
  }
}

export function describeBucket({ entityId, resource, bucket }: OwnedBucket, nowMs: EpochMs): BucketRecord {
  const current = copyBucket(bucket);
  reclaimExpired(current, nowMs);
  return {
    entityId,
    resource,
    limits: current.limits.map(({ limit, tokensMilli, consumedMilli }) => ({
      limit,
      availableMilli: effectiveTokens(limit, tokensMilli, credit(limit, current.baseMs, nowMs)),
      // For slots: those that are held. A reset removes holders, and counts nothing as given back.
      consumedMilli: isConsumed(limit.kind) ? consumedMilli : heldSlots(current.holders, limit.name),
    })),
    holders: countOpen(current.holders),
    acquires: current.acquires,
    expired: current.expired,
    ...(current.pause === null ? {} : { pause: current.pause }),
  };
}

export function pauseBucket(space: Space, call: AdminCall, level: BucketToPause, wanted: Pause | null): PauseChange {
  const { entityId, resource } = level;
  const stored = space.readBucket(entityId, resource);
  const change = planPause(stored?.pause, wanted);
  if (samePause(change.before, change.after)) return change;
  const bucket = stored ?? createBucket(level.limits, level.version, call.nowMs);
  bucket.pause = change.after;
  space.writeBucket(entityId, resource, bucket, call.nowMs);
  audit(space, call, ...auditOfPause('bucket', entityId, change, resource));
  return change;
}

export function resetBucket(space: Space, call: AdminCall, entityId: string, resource: string): boolean {
  const bucket = space.readBucket(entityId, resource);
  if (bucket === undefined) return false;
  const before = balances(bucket, call.nowMs);
  foldBeforeHourEnds(space, { entityId, resource }, bucket, call.nowMs);
  // Gives back what each lease would have got back at its expiry; its settle charges the whole amount again.
  for (const { rates } of bucket.holders.values()) move(bucket, 'rate', negated(rates ?? []), call.nowMs);
  for (const account of bucket.limits) account.tokensMilli = fullTokens(account.limit);
  forgetOpenHolders(bucket);
  bucket.baseMs = nextBase(bucket.baseMs, call.nowMs);
  space.writeBucket(entityId, resource, bucket, call.nowMs);
  audit(space, call, 'bucket.reset', entityId, { resource, ...before }, { resource, ...balances(bucket, call.nowMs) });
  return true;
}

function balances(bucket: Bucket, nowMs: EpochMs): { readonly tokensMilli: unknown; readonly holders: number } {
  const tokens = bucket.limits
    .filter(({ limit }) => hasBalance(limit.kind))
    .map(({ limit, tokensMilli }) => [
      limit.name,
      String(effectiveTokens(limit, tokensMilli, credit(limit, bucket.baseMs, nowMs))),
    ]);
  return { tokensMilli: Object.fromEntries(tokens), holders: countOpen(bucket.holders) };
}
