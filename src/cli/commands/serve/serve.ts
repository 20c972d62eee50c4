import type { Command } from 'commander';
import { randomBytes } from 'node:crypto';
import { InfrastructureError, isHeadgateError, ValidationError } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import { reasonOf } from '../../../core/reason-of.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import type { HeaderFormat } from '../../../integrations/http/admission/headers.js';
import type { AccessEntry } from '../../../server/answer/access-log.js';
import type { RunningServer, ServeOptions } from '../../../server/serve.js';
import { parseDuration, parsePort, parseWhole } from '../../arguments/parse.js';
import { parseSentFile } from '../../limits/parse-sent-file.js';
import { addExamples, appendValue, type CommandContext, type Definition } from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';
import type { Terminal } from '../../terminal/terminal.js';
import { stopOnSignal } from '../../terminal/interruption.js';
import { describeServe, examplesOf, tokenOption } from './describe-serve.js';

interface ServeFlags extends GlobalOptions {
  readonly port: string;
  readonly host: string;
  readonly tokens?: string;
  readonly limit?: readonly string[];
  readonly accessLog?: boolean;
  readonly demo?: boolean;
  readonly headers: HeaderFormat;
  readonly maxWaiting: string;
  readonly maxWait: string;
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
    .option('--max-waiting <number>', 'how many calls may wait for their limits; further ones get 503', '10000')
    .option('--max-wait <duration>', 'how long a call may wait: fetch of Node gives up after 300 s', '290s')
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
  const port = parsePort('--port', asked.port, 0);
  const demo = asked.demo === true ? await import('./demo/demo.js') : null;
  const flags = demo === null ? asked : { ...asked, store: asked.store ?? demo.demoStore() };
  const [events, metrics, dashboard] = [new EventHub(), new LimiterMetrics(), readDashboard()];
  const tokens = await tokensOf(flags, terminal.env);
  const note = (text: string): void => terminal.err(`headgate: ${text}\n`);
  // Everything about the demo is new and temporary: its file, and its secret.
  const hint = demo === null ? note : (): void => undefined;
  const onError = (error: unknown, where: string): void => note(`${where}: ${reasonOf(error)}`);
  const limits = (flags.limit ?? []).map((text) => Limit.parse(text));
  const { limiter, address, namespace } = openStore(flags, terminal.env, hint, {
    limits,
    onError,
    ...leaseSecretOf(terminal.env, hint),
    onEvent: (event) => {
      metrics.onEvent(event);
      events.onEvent(event);
      if (event.type === 'outage-begin') note(`the store does not answer: ${reasonOf(event.error)}`);
      if (event.type === 'outage-end') note('the store answers again');
    },
  });
  try {
    // From the start: the first process of a container does not get a signal that it does not listen to.
    await stopOnSignal(async (stop) => {
      const opened = await Promise.race([limiter.ping(), aborted(stop.signal)]);
      if (opened === undefined) return;
      if (!opened.ok) throw opened.error;
      await checkNamespaceExists(limiter, namespace, flags, note);
      if (demo !== null) await demo.prepareDemo(limiter, asked.store === undefined);
      const options = { ...serverOptionsOf(flags, terminal), onError, namespace, tokens, events, metrics, dashboard };
      const listen = (at: number): Promise<RunningServer> => serve(limiter, { ...options, port: at });
      const server = await (demo === null ? listen(port) : listenAnywhere(listen, port, note)).catch(
        (error: unknown) => {
          throw explainListening(error, flags, port);
        },
      );
      const shape: ServeShape = {
        url: server.url,
        dashboard: dashboard === null ? null : `${server.url}${DASHBOARD_PATH}/`,
        store: address,
        namespace,
        tokens: tokens.length,
      };
      const isJson = flags.json === true;
      const examples = (): Promise<readonly string[]> => examplesOf(limiter, limits, shape);
      const commands = demo?.demoCommands(server.url, tokenOption(tokens.length));
      const text = isJson ? JSON.stringify(shape) : describeServe(shape, commands ?? (await examples()));
      terminal.outlivesOutput = true;
      // Printed last: a program that has read it may end the server at once.
      terminal.out(`${text}\n`);
      if (demo === null) await aborted(stop.signal);
      else await demo.runDemo(limiter, terminal, stop.signal, isJson);
      note('stopping: requests in flight are answered first');
      await server.close();
    });
  } finally {
    // Leases that travel with their token belong to the clients.
    await limiter.close({ leases: 'keep' });
  }
}

/** A misspelt namespace would be seen with the first ask only. Tokens may be for other namespaces than the default one. */
async function checkNamespaceExists(
  limiter: RateLimiter,
  namespace: string,
  flags: ServeFlags,
  note: (text: string) => void,
): Promise<void> {
  try {
    await limiter.in(namespace);
  } catch (error) {
    if (flags.namespace !== undefined || !isHeadgateError(error, 'namespace.missing')) throw error;
    note(`${error.message}: requests must name another one (headgate-namespace), or use a token of one`);
  }
}

function serverOptionsOf(flags: ServeFlags, terminal: Terminal): ServeOptions {
  const { host: hostname, headers, protectService = false, accessLog = false } = flags;
  const onAccess = (entry: AccessEntry): void => terminal.out(`${JSON.stringify(entry)}\n`);
  return {
    hostname,
    headers,
    protectService,
    maxWaiting: parseWhole('--max-waiting', flags.maxWaiting),
    maxWaitMs: parseDuration('--max-wait', flags.maxWait),
    parseLimitsFile: parseSentFile,
    ...(accessLog ? { onAccess } : {}),
  };
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

/** An address that the operating system refuses is no defect of this program. */
function explainListening(error: unknown, flags: ServeFlags, port: number): unknown {
  const { host } = flags;
  if (error instanceof ValidationError) return explainOption(error, flags);
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  const isTaken = 'code' in error && error.code === 'EADDRINUSE';
  const message = isTaken
    ? `Port ${port} is used by another program: choose one with --port`
    : `Cannot listen on ${host}, port ${port}: ${error.message}`;
  return new InfrastructureError('infrastructure.port-taken', message, { cause: error });
}

/** A person has written the option of the command line, not that of `serve` in the library. */
function explainOption(error: ValidationError, { host, maxWait, headers }: ServeFlags): ValidationError {
  const makeToken = '`headgate token create <name>` makes one, --tokens reads it';
  switch (error.field) {
    case 'hostname': {
      const expected = `a loopback address such as 127.0.0.1 while there are no tokens; ${makeToken}`;
      return new ValidationError('--host', expected, host);
    }
    case 'maxWaitMs':
      return new ValidationError('--max-wait', 'at most 24hour', maxWait);
    case 'headers':
      return new ValidationError('--headers', error.expected, headers);
    case 'protectService':
      return new ValidationError('--protect-service', `left out while there are no tokens; ${makeToken}`, true);
    default:
      return error;
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

async function tokensOf({ tokens }: ServeFlags, env: Readonly<Record<string, string | undefined>>) {
  const [{ parseTokens }, { readTokenFile }] = await Promise.all([
    import('../../../server/access/access-token.js'),
    import('../../../server/access/token-file.js'),
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
