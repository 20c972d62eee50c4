/** Stores for limiters that people already have. */
export { ExpressRateLimitStore, type ExpressStoreOptions } from './express-rate-limit.js';
export { type FastifyStore, fastifyRateLimitStore } from './fastify-rate-limit.js';
export type { HitStoreOptions, StoreLimiter } from './hit-counter.js';
export { NestThrottlerStorage } from './nest-throttler.js';
