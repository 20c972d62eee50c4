import type { ConfigLevel } from '../../core/config/config.js';
import type { ResolvedOptions } from '../options.js';
import { callListener, report } from '../store-context.js';
import type { LimiterEvent } from './limiter-event.js';

/** The listeners that have thrown. Each is reported once: it would throw with every event. */
const failing = new WeakSet<object>();

/** Calls `onEvent`. An exception that it throws does not affect the caller. Callers check first that there is a listener. */
export function emit(options: ResolvedOptions, event: LimiterEvent): void {
  const { onEvent } = options;
  if (onEvent === null) return;
  callListener(onEvent, [event], (error) => {
    if (failing.has(onEvent)) return;
    failing.add(onEvent);
    report(options, error, 'onEvent');
  });
}

/** A change of one level of configuration by this process. */
export function emitConfigChange(
  { options, namespace }: { readonly options: ResolvedOptions; readonly namespace: string },
  level: ConfigLevel,
): void {
  if (options.onEvent === null) return;
  const entityId = 'entityId' in level ? level.entityId : null;
  const resource = 'resource' in level ? level.resource : null;
  emit(options, { type: 'config-change', namespace, by: 'this-process', entityId, resource });
}
