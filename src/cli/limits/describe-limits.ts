import type { PaintedCell } from '../../visualize/table.js';
import type { ConfigLevelRef } from '../../limiter/api/config-api.js';
import type { Style } from '../terminal/terminal.js';

/** Limits on one line; if there are none, the text `none`, dimmed. */
export function showLimits(limits: readonly string[], style: Style, none: string): string | PaintedCell {
  return limits.length > 0 ? limits.join('  ') : { value: none, paint: style.dim };
}

const SOURCES = {
  call: () => 'the -l of this call',
  entity: (entityId: string, resource: string) => `entity ${entityId} on ${resource}`,
  entity_default: (entityId: string) => `entity ${entityId}, every resource`,
  resource: (_: string, resource: string) => `resource ${resource}`,
  system: () => 'system',
} as const;

export type LimitsSource = keyof typeof SOURCES;

export function describeLevel(level: ConfigLevelRef): string {
  if (level === 'system') return SOURCES.system();
  if (!('entityId' in level)) return SOURCES.resource('', level.resource);
  const { entityId, resource } = level;
  return resource === undefined ? SOURCES.entity_default(entityId) : SOURCES.entity(entityId, resource);
}

export function describeSource(source: LimitsSource, entityId: string, resource: string): string {
  return SOURCES[source](entityId, resource);
}
