import type { Call, Tuning } from '../../../backend.js';
import { DEFAULT_LIFE_FACTOR } from './bucket-ttl.js';

/** For calls without tuning: the defaults of the limiter's options. */
const defaults: Tuning = {
  maxRetries: 5,
  denyCacheMs: 1_000,
  bucketLifeFactor: DEFAULT_LIFE_FACTOR,
  configCacheMs: 60_000,
};

export function tuningOf({ tuning }: Pick<Call, 'tuning'>): Tuning {
  return tuning ?? defaults;
}
