export { type AccessToken, createSecret, hashSecret, parseTokens, type Role } from './access-token.js';
export type { AccessEntry } from './app.js';
export { EventHub, type ServerEvent } from './event-hub.js';
export { LimiterMetrics } from '../integrations/telemetry/limiter-metrics.js';
export type { HeaderFormat } from '../integrations/http/headers.js';
export { buildOpenApi } from './openapi.js';
export { createServer, type Server, type ServerOptions } from './server.js';
export { DEFAULT_PORT, type RunningServer, serve, type ServeOptions } from './serve.js';
