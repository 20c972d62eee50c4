import type { ConfigRead } from '../../backend.js';
import { type CodeLimits, resolveConfig, type StoredConfig } from '../../core/config/config.js';
import { holdsSlots } from '../../core/limit-kind.js';
import { isRunning } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import type { ResolvedRead } from './config-cache.js';

/** The number of resources whose shared config is kept. */
const MAX_SHARED = 1_000;

/** Resolves configs that were read, and keeps the ones that many entities share. */
export class ResolvedReads {
  readonly #code: CodeLimits;
  /** By resource. */
  readonly #shared = new Map<string, ResolvedRead>();

  constructor(code: CodeLimits) {
    this.#code = code;
  }

  /** Entities without settings of their own share one object for each resource: most of the cache would be copies of it. */
  of(resource: string, read: ConfigRead, nowMs: EpochMs): ResolvedRead {
    const { levels, entity, bucketPause } = read;
    if (
      bucketPause !== undefined ||
      levels.entity !== undefined ||
      levels.entityDefault !== undefined ||
      entity !== undefined
    ) {
      return resolveRead(read, this.#code, nowMs);
    }
    const known = this.#shared.get(resource);
    if (
      known !== undefined &&
      isSame(known.read.levels.resource, levels.resource) &&
      isSame(known.read.levels.system, levels.system)
    ) {
      return known;
    }
    const resolved = resolveRead(read, this.#code, nowMs);
    if (this.#shared.size >= MAX_SHARED) this.#shared.clear();
    this.#shared.set(resource, resolved);
    return resolved;
  }
}

function resolveRead(read: ConfigRead, code: CodeLimits, nowMs: EpochMs): ResolvedRead {
  const resolved = resolveConfig(read.levels, code);
  return {
    ...resolved,
    read,
    hasCosts: resolved.limits.some(({ cost }) => cost !== undefined),
    hasSlots: resolved.limits.some(({ kind }) => holdsSlots(kind)),
    hasPause: isRunning(read.bucketPause, nowMs) || isRunning(read.entity?.pause, nowMs),
    hasShadows: read.entity?.bypass === true || resolved.limits.some(({ shadow }) => shadow),
    hasWarnings: resolved.limits.some(({ warnAt }) => warnAt !== undefined),
    bypasses: read.entity?.bypass === true,
    cascadesTo: read.entity?.cascade === true ? read.entity.parentId : null,
  };
}

function isSame(one: StoredConfig | undefined, other: StoredConfig | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  // A store that was restored from a backup may use a version a second time.
  return one.v === other.v && one.onUnavailable === other.onUnavailable && String(one.limits) === String(other.limits);
}
