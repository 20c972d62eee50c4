import type { Command } from 'commander';
import { randomBytes } from 'node:crypto';
import { ValidationError } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import type { HeaderFormat } from '../../../integrations/http/headers.js';
import type { AccessEntry } from '../../../server/app.js';
import type { ParsedLimitsFile } from '../../../server/limits-file-parser.js';
import type { RunningServer } from '../../../server/serve.js';
import { addExamples, appendValue, type CommandContext, type Definition } from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';
import { stopOnSignal } from '../../terminal/interruption.js';

interface ServeFlags extends GlobalOptions {
  readonly port: string;
  readonly host: string;
  readonly tokens?: string;
  readonly limit?: readonly string[];
  readonly accessLog?: boolean;
  readonly demo?: boolean;
  readonly headers: HeaderFormat;
  readonly protectService?: boolean;
}

/** `--json` of `serve`, one line when it listens */
export interface ServeShape {
  readonly url: string;
  /** null: the dashboard was not built. */
  readonly dashboard: string | null;
  readonly store: string;
  readonly namespace: string;
  readonly tokens: number;
}

export const define: Definition = (command, context) => {
  addExamples(command, [
    'serve --store file:./limits.db',
    'serve --store dynamodb://limits --tokens headgate-tokens.json --host 0.0.0.0',
    'serve --limit rpm:100/min --limit slots:4/concurrent',
  ])
    .option('--port <number>', 'the port; 0 for a free one', '8700')
    .option('--host <address>', 'the address to listen on; a public one needs tokens', '127.0.0.1')
    .option('--tokens <file>', 'who may call (HEADGATE_TOKENS has the same list as JSON)')
    .option('--limit <limit>', 'limits where the store has none; repeatable', appendValue)
    .option('--headers <format>', 'rate-limit fields of decisions: draft-10, draft-6, x-ratelimit or none', 'draft-10')
    .option('--protect-service', 'ask for an admin token at /metrics, /docs and /openapi.json')
    .option('--demo', 'serve a file under .headgate/ with the live traffic of a simulated fleet')
    .option('--access-log', 'print one JSON line for each request on standard output')
    .action((...called: unknown[]) => run(context, (called.at(-1) as Command).optsWithGlobals<ServeFlags>()));
};

/** Serves until the process is interrupted. Requests in flight are answered first. */
async function run({ terminal }: CommandContext, asked: ServeFlags): Promise<void> {
  const [{ serve, EventHub, readDashboard, DASHBOARD_PATH }, { LimiterMetrics }, { openStore }] = await Promise.all([
    import('../../../server/index.js'),
    import('../../../integrations/telemetry/limiter-metrics.js'),
    import('../../run/open-store.js'),
  ]);
  const demo = asked.demo === true ? await import('./demo/demo.js') : null;
  const flags = demo === null ? asked : { ...asked, store: asked.store ?? demo.demoStore() };
  const [events, metrics, dashboard] = [new EventHub(), new LimiterMetrics(), readDashboard()];
  const tokens = await tokensOf(flags, terminal.env);
  const note = (text: string): void => terminal.err(`headgate: ${text}\n`);
  const limits = (flags.limit ?? []).map((text) => Limit.parse(text));
  const { limiter, address, namespace } = openStore(flags, terminal.env, note, {
    limits,
    ...leaseSecretOf(terminal.env, note),
    onEvent: (event) => {
      metrics.onEvent(event);
      events.onEvent(event);
    },
  });
  try {
    const opened = await limiter.ping();
    if (!opened.ok) throw opened.error;
    const onAccess = (entry: AccessEntry): void => terminal.out(`${JSON.stringify(entry)}\n`);
    const listen = (port: number): Promise<RunningServer> =>
      serve(limiter, {
        port,
        hostname: flags.host,
        namespace,
        tokens,
        events,
        metrics,
        dashboard,
        parseLimitsFile,
        headers: flags.headers,
        protectService: flags.protectService === true,
        onError: (error, where) => note(`${where}: ${error instanceof Error ? error.message : String(error)}`),
        ...(flags.accessLog === true ? { onAccess } : {}),
      });
    const server = await (demo === null
      ? listen(portOf(flags.port))
      : listenAnywhere(listen, portOf(flags.port), note));
    const dashboardUrl = dashboard === null ? null : `${server.url}${DASHBOARD_PATH}/`;
    const shape: ServeShape = {
      url: server.url,
      dashboard: dashboardUrl,
      store: address,
      namespace,
      tokens: tokens.length,
    };
    const text = flags.json === true ? JSON.stringify(shape) : describe(shape, demo?.demoCommands(server.url));
    await stopOnSignal(async (stop) => {
      // Printed last: a program that has read it may end the server at once.
      terminal.out(`${text}\n`);
      if (demo === null) await aborted(stop.signal);
      else await demo.runDemo(limiter, terminal, stop.signal);
      note('stopping: requests in flight are answered first');
      await server.close();
    });
  } finally {
    // Leases that travel with their token belong to the clients.
    await limiter.close({ leases: 'keep' });
  }
}

/** Reads the limits files of the page Limits as `headgate limits` does. The parser is loaded with the first file. */
async function parseLimitsFile(text: string): Promise<ParsedLimitsFile> {
  const { parseManifestFile } = await import('../../limits/manifest-file.js');
  return parseManifestFile(new TextEncoder().encode(text), 'limits file');
}

/** Without a secret of its own, a server signs with a random one, which ends with the process. */
function leaseSecretOf(env: Readonly<Record<string, string | undefined>>, note: (text: string) => void) {
  if ((env['HEADGATE_LEASE_SECRET'] ?? '') !== '') return {};
  note('HEADGATE_LEASE_SECRET is not set: tokens of leases are valid until this server ends, and for no other server');
  return { leaseSecrets: [randomBytes(32).toString('base64url')] as const };
}

/** The demo must start on a machine that uses the port for something else. */
async function listenAnywhere(
  listen: (port: number) => Promise<RunningServer>,
  port: number,
  note: (text: string) => void,
): Promise<RunningServer> {
  try {
    return await listen(port);
  } catch (error) {
    if ((error as { readonly code?: string }).code !== 'EADDRINUSE') throw error;
    note(`port ${port} is taken: the server uses a free one`);
    return listen(0);
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

async function tokensOf({ tokens }: ServeFlags, env: Readonly<Record<string, string | undefined>>) {
  const [{ parseTokens }, { readTokenFile }] = await Promise.all([
    import('../../../server/access-token.js'),
    import('../../../server/token-file.js'),
  ]);
  if (tokens !== undefined) return atLeastOne(await readTokenFile(tokens), tokens);
  const listed = env['HEADGATE_TOKENS'];
  if (listed === undefined || listed === '') return [];
  return atLeastOne(parseTokens(listed, 'HEADGATE_TOKENS'), 'HEADGATE_TOKENS');
}

/** A server without tokens is open to every local caller, which is not what an empty list asks for. */
function atLeastOne<T>(tokens: readonly T[], source: string): readonly T[] {
  if (tokens.length === 0) throw new ValidationError(source, 'a list of at least one token', tokens);
  return tokens;
}

function portOf(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new ValidationError('port', 'a whole number from 0 to 65535', text);
}

function describe(
  { url, dashboard, store, tokens }: ServeShape,
  examples: readonly string[] = [exampleOf(url, tokens > 0)],
): string {
  const access =
    tokens === 0
      ? 'no tokens: it listens on this machine only, and every caller may do everything'
      : `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
  return [
    ...(dashboard === null ? [] : [`Dashboard: ${dashboard}`, '']),
    `Headgate serves ${store} at ${url} (${access})`,
    `  API           ${url}/docs`,
    `  OpenAPI 3.1   ${url}/openapi.json`,
    '',
    'Try it from another terminal:',
    ...examples.map((line) => `  ${line}`),
    '',
  ].join('\n');
}

function exampleOf(url: string, needsToken: boolean): string {
  const header = needsToken ? ` -H 'authorization: Bearer <secret of a token>'` : '';
  return `curl -s ${url}/v1/acquire${header} -d '{"entityId":"user-1","resource":"gpt-4","consume":{"rpm":1}}'`;
}
