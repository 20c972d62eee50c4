import type { ConfigLevel, OnUnavailable, StoredConfig } from './config.js';
import { checkLimits, type Limit } from '../limit.js';

type Fields = Omit<StoredConfig, 'v'>;

/** The effect of a change of one level. */
export interface ConfigPlan {
  readonly config: Fields;
  readonly action: 'config.set' | 'config.delete';
  readonly subject: string;
  /** As the audit record shows it; null if the level has no config. */
  readonly before: unknown;
  readonly after: unknown;
  /** If true, the write takes no sequence number and adds no audit record. */
  readonly changesNothing: boolean;
}

/** A field that the change leaves out stays; null removes it. `mergeLimits` changes only the limits that it names. */
export function planConfigChange(
  level: ConfigLevel,
  stored: Fields | undefined,
  change: {
    readonly limits?: readonly Limit[] | null;
    readonly mergeLimits?: readonly Limit[];
    readonly onUnavailable?: OnUnavailable | null;
  },
): ConfigPlan {
  const storedLimits = stored?.limits ?? null;
  const wanted = change.mergeLimits === undefined ? change.limits : mergeLimits(storedLimits ?? [], change.mergeLimits);
  const config = {
    limits: wanted === undefined ? storedLimits : wanted,
    onUnavailable: change.onUnavailable === undefined ? (stored?.onUnavailable ?? null) : change.onUnavailable,
  };
  const before = describe(level, stored);
  const after = describe(level, config);
  return {
    config,
    action: after === null ? 'config.delete' : 'config.set',
    subject: subjectOf(level),
    before,
    after,
    changesNothing: JSON.stringify(after) === JSON.stringify(before),
  };
}

/** Keeps the stored order, so that merging limits that are stored already changes nothing. */
function mergeLimits(stored: readonly Limit[], changes: readonly Limit[]): readonly Limit[] {
  const merged = new Map(stored.map((limit) => [limit.name, limit]));
  for (const limit of changes) merged.set(limit.name, limit);
  const limits = [...merged.values()];
  checkLimits('limits', limits);
  return limits;
}

function subjectOf(level: ConfigLevel): string {
  if (level.kind === 'system') return '$SYSTEM';
  return level.kind === 'resource' ? `$RESOURCE:${level.resource}` : level.entityId;
}

function describe(level: ConfigLevel, config: Fields | undefined): unknown {
  if (config === undefined || (config.limits === null && config.onUnavailable === null)) return null;
  const { limits, onUnavailable } = config;
  return {
    ...(level.kind === 'entity' ? { resource: level.resource } : {}),
    limits: (limits ?? []).map(String),
    ...(onUnavailable === null ? {} : { onUnavailable }),
  };
}
