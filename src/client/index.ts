export { HeadgateClient, type RemoteDecision, type RemoteRequest } from './client.js';
export { type ClientOptions, type ProblemBody, RemoteError } from './http.js';
export { type LeaseBody, RemoteLease } from './remote-lease.js';
export type { OnThrow, RunOptions } from '../core/lease-scope.js';
export type { LimitStatus } from '../core/bucket/decide.js';
export { BackendUnavailable, HeadgateError, isHeadgateError, LeaseClosed, ValidationError } from '../core/errors.js';
export { Limit } from '../core/limit.js';
export { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
