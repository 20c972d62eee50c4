/** Real DynamoDB engines for tests, and a proxy that makes them fail on purpose. Imports no test runner, no AWS SDK. */
export type { EngineName } from './engine-programs.js';
export { type EngineOptions, findEngine, type FoundEngine } from './find-engine.js';
export { type Engine, startEngine } from './start-engine.js';
