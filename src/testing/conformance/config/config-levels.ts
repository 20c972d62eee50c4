import type { ConfigSource } from '../../../core/config/config.js';
import type { ConfigLevelRef } from '../../../limiter/api/config-api.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { USER } from '../kit/asking.js';
import { limits } from '../kit/fixture.js';

/** One of the stored levels of configuration that apply to `user-1` on `gpt-4`. */
export interface StoredLevel {
  readonly source: Exclude<ConfigSource, 'code'>;
  readonly ref: ConfigLevelRef;
  set(limiter: RateLimiter, ...rules: string[]): Promise<void>;
  merge(limiter: RateLimiter, ...rules: string[]): Promise<void>;
}

/** In the order of precedence, the highest first. */
export const STORED_LEVELS: readonly StoredLevel[] = [
  {
    source: 'entity',
    ref: USER,
    set: async ({ config }, ...rules) => config.setEntity(USER.entityId, USER.resource, { limits: limits(...rules) }),
    merge: async ({ config }, ...rules) =>
      config.mergeEntity(USER.entityId, USER.resource, { limits: limits(...rules) }),
  },
  {
    source: 'entity_default',
    ref: { entityId: USER.entityId },
    set: async ({ config }, ...rules) => config.setEntityDefault(USER.entityId, { limits: limits(...rules) }),
    merge: async ({ config }, ...rules) => config.mergeEntityDefault(USER.entityId, { limits: limits(...rules) }),
  },
  {
    source: 'resource',
    ref: { resource: USER.resource },
    set: async ({ config }, ...rules) => config.setResource(USER.resource, { limits: limits(...rules) }),
    merge: async ({ config }, ...rules) => config.mergeResource(USER.resource, { limits: limits(...rules) }),
  },
  {
    source: 'system',
    ref: 'system',
    set: async ({ config }, ...rules) => config.setSystem({ limits: limits(...rules) }),
    merge: async ({ config }, ...rules) => config.mergeSystem({ limits: limits(...rules) }),
  },
];
