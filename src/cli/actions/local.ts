import { ValidationError } from '../../core/errors.js';
import { readStatus, type RunningEngine, startLocal, stopLocal } from '../../local/local.js';
import { localFolder } from '../../local/state.js';
import { createConfirm } from '../confirm.js';
import type { GlobalOptions } from '../global-options.js';
import { type ManifestFile, readManifestFile } from '../manifest-file.js';
import { parseWhole } from '../parse.js';
import type { Result } from '../result.js';
import { useStore } from '../run-command.js';
import type { LocalDownShape, LocalStatusShape, LocalUpShape } from '../local-shapes.js';
import type { LimitsPlanShape } from '../shapes.js';
import type { Style, Terminal } from '../terminal.js';
import { applyLimits } from './limits.js';

/** An action on this machine. */
export type LocalAction<O> = (terminal: Terminal, options: GlobalOptions & O) => Promise<Result>;

interface UpFlags {
  readonly seed?: string;
  readonly port?: string;
  readonly data?: string;
}

export const up: LocalAction<UpFlags> = async (terminal, options): Promise<Result<LocalUpShape>> => {
  const { seed, data } = options;
  const port = options.port === undefined ? undefined : parsePort(options.port);
  // Before anything is started: a file with a mistake must not leave something behind.
  const manifest = seed === undefined ? null : await readManifestFile(seed, terminal.stdin);
  const namespace = manifest?.namespaceFor(options.namespace);
  const engine = await startLocal({
    folder: localFolder(terminal.env),
    cwd: process.cwd(),
    ...(port === undefined ? {} : { port }),
    ...(data === undefined ? {} : { data }),
  });
  if (engine.engine === 'dynamodb-local') {
    terminal.note('DynamoDB Local cannot be told to listen on this machine only: others may reach its port');
  }
  const seeded =
    manifest === null || namespace === undefined
      ? null
      : await applySeed(terminal, { ...options, namespace, store: engine.url }, manifest);
  return {
    data: { ...shapeOf(engine), started: engine.started, seed: seeded?.data ?? null },
    text: (style) =>
      [
        `${engine.started ? style.green('started') : 'runs already'}: ${describe(engine)}`,
        ...(seeded === null ? [] : [seeded.text(style)]),
        `export HEADGATE_URL='${engine.url}'`,
      ].join('\n\n'),
  };
};

/** The namespace of the file is made: on a machine of one's own a wrong name harms nobody. */
async function applySeed(
  terminal: Terminal,
  options: GlobalOptions & { readonly namespace: string },
  manifest: ManifestFile,
): Promise<Result<LimitsPlanShape>> {
  return useStore(terminal, options, async (session) => {
    await session.limiter.namespaces.register(options.namespace);
    try {
      return await applyLimits(session, manifest);
    } catch (error) {
      throw manifest.explain(error);
    }
  });
}

export const down: LocalAction<{ readonly purge?: boolean }> = async (
  terminal,
  options,
): Promise<Result<LocalDownShape>> => {
  const { purge = false } = options;
  const folder = localFolder(terminal.env);
  if (purge) {
    const { data } = await readStatus(folder);
    if (data !== null) await createConfirm(terminal, options)(`deletes the table on this machine (${data})`);
  }
  const stopped = await stopLocal(folder, { purge });
  return { data: stopped, text: (style) => describeStop(stopped, style) };
};

function describeStop({ pid, purged, data }: LocalDownShape, style: Style): string {
  const ended = pid === null ? 'Nothing runs' : `${style.green('stopped')}: process ${pid} has ended`;
  if (data === null) return `${ended}.`;
  return purged ? `${ended}; ${data} is deleted.` : `${ended}; the data stays in ${data}.`;
}

export const status: LocalAction<object> = async (terminal): Promise<Result<LocalStatusShape>> => {
  const found = await readStatus(localFolder(terminal.env));
  if (!found.running) {
    const nothing = { engine: null, pid: null, port: null, url: null, log: null, startedAt: null } as const;
    const kept = found.data === null ? '' : `; the data of the last time is in ${found.data}`;
    return {
      data: { ...nothing, running: false, answers: false, data: found.data },
      text: () => `Nothing runs${kept}: \`headgate local up\` starts it.`,
    };
  }
  return {
    data: { ...shapeOf(found), running: true, answers: found.answers },
    text: (style) =>
      `${found.answers ? style.green('runs') : style.red('runs, but does not answer')}: ${describe(found)}\n\nexport HEADGATE_URL='${found.url}'`,
  };
};

function describe({ engine, port, pid, data, log }: RunningEngine): string {
  return `${engine} on 127.0.0.1:${port}, process ${pid}\ndata  ${data}\nlog   ${log}`;
}

function shapeOf({ engine, pid, port, url, data, log, startedAt }: RunningEngine) {
  return { engine, pid, port, url, data, log, startedAt };
}

const MAX_PORT = 65_535;

function parsePort(text: string): number {
  const port = parseWhole('--port', text);
  if (port < 1 || port > MAX_PORT) throw new ValidationError('--port', `a port from 1 to ${MAX_PORT}`, text);
  return port;
}
