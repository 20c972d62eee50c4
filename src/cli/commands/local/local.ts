import type { RunningEngine } from '../../../local/local.js';
import { createConfirm } from '../../run/confirm.js';
import { addExamples, addVerb, type CommandContext, type Definition, withoutStore } from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';
import type { LocalDownShape, LocalStatusShape, LocalUpShape } from './local-shapes.js';
import type { ManifestFile } from '../../limits/manifest-file.js';
import { parsePort } from '../../arguments/parse.js';
import type { Result } from '../../run/result.js';
import type { Style, Terminal } from '../../terminal/terminal.js';
import { applyLimits } from '../manage/limits.js';
import type { LimitsPlanShape } from '../manage/limits-shapes.js';

export const define: Definition = (local, context) => {
  addExamples(local, ['local up --seed limits.yaml', 'local down']);
  addVerb(local, {
    usage: 'up',
    summary: 'Start DynamoDB with a table in the background unless it runs, and print its address',
    examples: ['local up', 'local up --seed limits.yaml', 'local up --port 8000 --data ./limits-data.db'],
  })
    .option('--seed <file>', 'a limits file to apply, as `limits apply` does; its namespace is created')
    .option('--port <number>', 'the port on 127.0.0.1; by default the last one, else 8000, else a free one')
    .option('--data <file>', 'the file that keeps the data (for DynamoDB Local: the folder)')
    .action(onMachine(context, up));
  addVerb(local, {
    usage: 'down',
    summary: 'Stop what `local up` started; its data stays',
    examples: ['local down', 'local down --purge --yes'],
  })
    .option('--purge', 'delete the data, too')
    .action(onMachine(context, down));
  addVerb(local, {
    usage: 'status',
    summary: 'Show whether DynamoDB runs on this machine, and its address',
    examples: ['local status', 'local status --json'],
  }).action(onMachine(context, status));
};

function onMachine<O>(context: CommandContext, action: LocalAction<O>) {
  return withoutStore<O>(context, async (_, options) => action(context.terminal, options));
}

async function loadLocal() {
  const [{ readStatus, startLocal, stopLocal }, { localFolder }] = await Promise.all([
    import('../../../local/local.js'),
    import('../../../local/state.js'),
  ]);
  return { localFolder, readStatus, startLocal, stopLocal };
}

async function readSeed(path: string, { stdin }: Terminal): Promise<ManifestFile> {
  const { readManifestFile } = await import('../../limits/manifest-file.js');
  return readManifestFile(path, stdin);
}

type LocalAction<O> = (terminal: Terminal, options: GlobalOptions & O) => Promise<Result>;

interface UpFlags {
  readonly seed?: string;
  readonly port?: string;
  readonly data?: string;
}

const up: LocalAction<UpFlags> = async (terminal, options): Promise<Result<LocalUpShape>> => {
  const { seed, data } = options;
  const port = options.port === undefined ? undefined : parsePort('--port', options.port, 1);
  // A mistake in the file is reported before the engine is started.
  const manifest = seed === undefined ? null : await readSeed(seed, terminal);
  const namespace = manifest?.namespaceFor(options.namespace);
  const { startLocal, localFolder } = await loadLocal();
  const engine = await startLocal({
    folder: localFolder(terminal.env),
    cwd: process.cwd(),
    ...(port === undefined ? {} : { port }),
    ...(data === undefined ? {} : { data }),
  });
  if (engine.engine === 'dynamodb-local') {
    terminal.note('DynamoDB Local listens on every network interface: other machines may reach its port');
  }
  const seeded =
    manifest === null || namespace === undefined
      ? null
      : await applySeed(terminal, { ...options, namespace, store: engine.url }, manifest);
  return {
    data: { ...shapeOf(engine), started: engine.started, seed: seeded?.data ?? null },
    text: (style) =>
      [
        `${engine.started ? style.green('started') : 'already running'}: ${describe(engine)}`,
        ...(seeded === null ? [] : [seeded.text(style)]),
        `export HEADGATE_URL='${engine.url}'`,
      ].join('\n\n'),
  };
};

/** Creates the namespace of the file: on a developer's machine a misspelt name does no harm. */
async function applySeed(
  terminal: Terminal,
  options: GlobalOptions & { readonly namespace: string },
  manifest: ManifestFile,
): Promise<Result<LimitsPlanShape>> {
  const { useStore } = await import('../../run/run-on-store.js');
  return useStore(terminal, options, async (session) => {
    await session.limiter.namespaces.register(options.namespace);
    try {
      return await applyLimits(session, manifest);
    } catch (error) {
      throw manifest.explain(error);
    }
  });
}

const down: LocalAction<{ readonly purge?: boolean }> = async (terminal, options): Promise<Result<LocalDownShape>> => {
  const { purge = false } = options;
  const { localFolder, readStatus, stopLocal } = await loadLocal();
  const folder = localFolder(terminal.env);
  if (purge) {
    const { data } = await readStatus(folder);
    if (data !== null) await createConfirm(terminal, options)(`deletes the table on this machine (${data})`);
  }
  const stopped = await stopLocal(folder, { purge });
  return { data: stopped, text: (style) => describeStop(stopped, style) };
};

function describeStop({ pid, purged, data }: LocalDownShape, style: Style): string {
  const ended = pid === null ? 'DynamoDB did not run' : `${style.green('stopped')}: process ${pid} has ended`;
  if (data === null) return `${ended}.`;
  return purged ? `${ended}; ${data} is deleted.` : `${ended}; the data stays in ${data}.`;
}

const status: LocalAction<object> = async (terminal): Promise<Result<LocalStatusShape>> => {
  const { localFolder, readStatus } = await loadLocal();
  const found = await readStatus(localFolder(terminal.env));
  if (!found.running) {
    const nothing = { engine: null, pid: null, port: null, url: null, log: null, startedAt: null } as const;
    const data = found.data === null ? '' : `; its data is in ${found.data}`;
    return {
      data: { ...nothing, running: false, answers: false, data: found.data },
      text: () => `DynamoDB does not run${data}: \`headgate local up\` starts it.`,
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
