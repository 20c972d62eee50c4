/** Real DynamoDB engines for tests, and a proxy that injects faults. Imports no test runner and no AWS SDK. */
export type { EngineName } from '../../local/engine/engine-programs.js';
export { type EngineOptions, findEngine, type FoundEngine } from './find-engine.js';
export { type Engine, startEngine } from './start-engine.js';
export type { DynamoAnswer, DynamoRequest } from './dynamo-request.js';
export type { Throttling } from './error-answers.js';
export { type BrokenAnswer, type Fault, fault } from './fault.js';
export { type FaultProxy, type FaultProxyOptions, startFaultProxy } from './fault-proxy.js';
export type { FaultRule, InjectedFault } from './fault-rules.js';
export type { ConsumedCapacity, RecordedRequest, RequestLog } from './request-log.js';
