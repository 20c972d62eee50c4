export { type AccessToken, createSecret, hashSecret, parseTokens, type Role } from './access-token.js';
export type { AccessEntry } from './app.js';
export { type DashboardFile, type DashboardFiles, readDashboard } from './dashboard-files.js';
export { DASHBOARD_PATH } from './dashboard-routes.js';
export { EventHub, type ServerEvent } from './event-hub.js';
export { LimiterMetrics } from '../integrations/telemetry/limiter-metrics.js';
export { buildOpenApi } from './openapi.js';
export { createServer, type Server, type ServerOptions } from './server.js';
export { DEFAULT_PORT, type RunningServer, serve, type ServeOptions } from './serve.js';
