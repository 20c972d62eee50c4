import { ValidationError } from '../core/errors.js';
import { warnOfError } from '../limiter/warn-of-error.js';
import { HEADER_FORMATS, type HeaderFormat } from '../integrations/http/admission/headers.js';
import { checkOneOf } from '../limiter/options.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import { type AccessToken, checkTokens } from './access/access-token.js';
import { type AccessEntry, logAnswer } from './answer/access-log.js';
import { App } from './app.js';
import type { DashboardFiles } from './pages/dashboard-files.js';
import { addDashboard } from './pages/dashboard-routes.js';
import { renderDocs } from './pages/docs-page.js';
import { EventHub } from './live/event-hub.js';
import { buildOpenApi } from './openapi.js';
import { type LimitsFileParser, parseJsonFile } from './request/limits-file-parser.js';
import { countEventStreams } from './live/open-calls.js';
import { OPERATIONS } from './operations/index.js';
import { refuseOtherOrigins } from './access/local-requests.js';
import { respond } from './answer/respond.js';
import { type WaitingBounds, WaitingCalls } from './live/waiting-calls.js';

/** Options of `createServer`. */
export interface ServerOptions extends WaitingBounds {
  /**
   * Who may call. Left out or empty: everyone who can reach the server, except web pages of other sites (`Origin`). `serve`
   * then also refuses other host names than those of this machine; behind a server of your own that check is yours.
   */
  readonly tokens?: readonly AccessToken[];
  /** The namespace of requests that name none. Default: `default`. */
  readonly namespace?: string;
  /** The source of the event stream. Pass its `onEvent` to the limiter. Default: a hub without events. */
  readonly events?: EventHub;
  /**
   * How many event streams may be open, half of them with the same token. Further ones are answered 503, with the code
   * `server.busy`: every event costs time for each of them. Default: 256.
   */
  readonly maxEventStreams?: number;
  /** The source of `/metrics`. Default: there is no such route. */
  readonly metrics?: {
    /** Prints the metrics as text for Prometheus. Default: there is no route `/metrics`. */
    render(): string;
  };
  /** The dashboard, as `readDashboard` returns it. It is served at `/dashboard/`. Default, and null: there is no such route. */
  readonly dashboard?: DashboardFiles | null;
  /** Reads a limits file that is sent as text. `headgate serve` reads YAML. Default: JSON only. */
  readonly parseLimitsFile?: LimitsFileParser;
  /** The format of the rate-limit fields of decisions. Default: `draft-10`. */
  readonly headers?: HeaderFormat;
  /**
   * Whether `/metrics`, `/docs` and `/openapi.json` need an admin token: `/metrics` one for every namespace, because it
   * counts all of them. `/healthz` and `/readyz` stay open for probes. Default: false.
   */
  readonly protectService?: boolean;
  /** Called with errors that are not the client's. Default: a process warning. */
  readonly onError?: (error: unknown, where: string) => void;
  /** Called after every answer. Default: no access log. */
  readonly onAccess?: (entry: AccessEntry) => void;
}

/** The service as a function from a request to a response. */
export interface Server {
  /** Answers one request. */
  fetch(request: Request): Promise<Response>;
  /** Ends the event streams. The limiter stays open. */
  close(): void;
  /** Answers the requests that wait for tokens with 503, so that a server that ends need not cut them off. */
  endWaits(): void;
}

/** The version of the API, which the paths begin with. */
const API_VERSION = '1';

const JSON_TYPE = 'application/json';
const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8';
const HTML = 'text/html; charset=utf-8';
const NOSNIFF = { 'x-content-type-options': 'nosniff' } as const;

/** The documentation has no scripts and loads nothing from elsewhere. */
const CSP =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves a limiter over HTTP. Opens no socket: pass `fetch` to a server of your runtime, or use `serve`. */
export function createServer(limiter: RateLimiter, options: ServerOptions = {}): Server {
  if (!limiter.leases.hasSecret) {
    const expected = 'given to the limiter (or HEADGATE_LEASE_SECRET set): a server signs the tokens of leases with it';
    throw new ValidationError('leaseSecrets', expected, undefined);
  }
  const { events = new EventHub(), namespace = 'default', onError = warnOfError, onAccess } = options;
  const tokens = checkTokens(options.tokens ?? [], 'tokens');
  const {
    headers = 'draft-10',
    protectService = false,
    parseLimitsFile = parseJsonFile,
    maxEventStreams = 256,
  } = options;
  checkOneOf('headers', headers, HEADER_FORMATS);
  if (protectService && tokens.length === 0) {
    throw new ValidationError('protectService', 'left out while the server has no tokens', protectService);
  }
  const app = new App(limiter, OPERATIONS, {
    tokens,
    namespace,
    onError,
    events,
    headers,
    parseLimitsFile,
    waiting: new WaitingCalls(options),
    eventStreams: countEventStreams(maxEventStreams),
    isLogged: onAccess !== undefined,
  });
  const document = JSON.stringify(buildOpenApi(OPERATIONS, API_VERSION));
  const docs = renderDocs(OPERATIONS, API_VERSION);
  const addPage = (path: string, wholeStore: boolean, answer: () => Response): void => {
    const guarded = { id: path, role: 'admin', wholeStore } as const;
    app.router.get(path, ({ req }) => (protectService ? app.refuse(req.raw, guarded) : null) ?? answer());
  };
  addPage('/openapi.json', false, () => new Response(document, { headers: { ...NOSNIFF, 'content-type': JSON_TYPE } }));
  addPage('/docs', false, () => {
    return new Response(docs, { headers: { ...NOSNIFF, 'content-type': HTML, 'content-security-policy': CSP } });
  });
  app.router.get('/healthz', () => respond({ ok: true }, 200));
  const ping = cachedPing(limiter);
  app.router.get('/readyz', async () => {
    const result = await ping();
    return result.ok ? respond({ ok: true, latencyMs: result.latencyMs }, 200) : respond({ ok: false }, 503);
  });
  const { metrics } = options;
  if (metrics !== undefined) {
    addPage('/metrics', true, () => {
      return new Response(metrics.render(), { headers: { ...NOSNIFF, 'content-type': PROMETHEUS } });
    });
  }
  const { dashboard = null } = options;
  if (dashboard !== null) addDashboard(app.router, dashboard);
  const isOpen = tokens.length === 0;
  const answer = (request: Request): Promise<Response> => {
    const refused = isOpen ? refuseOtherOrigins(request) : null;
    return refused === null ? app.fetch(request) : Promise.resolve(refused);
  };
  return {
    fetch: onAccess === undefined ? answer : (request) => logAnswer(request, onAccess, () => answer(request)),
    close: () => events.close(),
    endWaits: () => app.endWaits(),
  };
}

const PING_MS = 1_000;

/** Anyone may ask whether the server is ready, and must not cause a request to the store each time. */
function cachedPing(limiter: RateLimiter): () => ReturnType<RateLimiter['ping']> {
  let [last, lastMs]: [ReturnType<RateLimiter['ping']> | null, number] = [null, 0];
  return () => {
    const nowMs = performance.now();
    if (last === null || nowMs - lastMs >= PING_MS) [last, lastMs] = [limiter.ping(), nowMs];
    return last;
  };
}
