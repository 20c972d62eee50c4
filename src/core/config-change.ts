import type { ConfigLevel, OnUnavailable, StoredConfig } from './config.js';
import type { Limit } from './limit.js';

type Fields = Omit<StoredConfig, 'v'>;

/** What a change of one level comes to. */
export interface ConfigPlan {
  readonly config: Fields;
  readonly action: 'config.set' | 'config.delete';
  readonly subject: string;
  /** As the audit shows it; null where there was, or is, nothing. */
  readonly before: unknown;
  readonly after: unknown;
  /** Then no version is used up, and no record is left. */
  readonly changesNothing: boolean;
}

/** A field that the change leaves out stays as it is; null removes it. */
export function planConfigChange(
  level: ConfigLevel,
  stored: Fields | undefined,
  change: { readonly limits?: readonly Limit[] | null; readonly onUnavailable?: OnUnavailable | null },
): ConfigPlan {
  const config = {
    limits: change.limits === undefined ? (stored?.limits ?? null) : change.limits,
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
