export { type LimitedFetch, limitFetch, type LimitFetchOptions } from './fetch/limit-fetch.js';
export { limitModel, type ModelLimits } from './limit-model.js';
export type { CountTokens, OutputEstimate } from './call/estimator.js';
export type { CallFailure, FailureKind, OnFailure } from './call/failure.js';
export type { LlmOptions, ProviderThrottle } from './call/llm-options.js';
export type { Measure, Measures } from './call/measures.js';
export type { Price, Prices } from './call/prices.js';
export type { LlmApi, LlmCall } from './request/llm-call.js';
