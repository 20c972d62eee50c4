import type { Command } from 'commander';
import type { LimitsAction } from '../actions/limits.js';
import { addNoun, addVerb, type CommandContext, onStore } from '../define-command.js';
import type { GlobalOptions } from '../global-options.js';

const load = () => import('../actions/limits.js');

export function addLimitsCommands(context: CommandContext): void {
  const limits = addNoun(context.program, 'limits', 'All limits and entities of a namespace as one file', [
    'limits export -o limits.yaml',
    'limits plan -f limits.yaml',
    'limits apply -f limits.yaml',
  ]);
  addFile(
    addVerb(limits, {
      usage: 'plan',
      summary: 'Show what apply would change, and what was changed by hand',
      examples: ['limits plan -f limits.yaml', 'limits plan -f limits.yaml --json'],
    }),
  ).action(onFile(context, async () => (await load()).planLimits));
  addFile(
    addVerb(limits, {
      usage: 'apply',
      summary: 'Make the namespace what the file says: sets what it names, removes what it has named before',
      examples: ['limits apply -f limits.yaml', 'limits apply -f limits.yaml --yes'],
    }),
  ).action(onFile(context, async () => (await load()).applyLimits));
  addFile(
    addVerb(limits, {
      usage: 'diff',
      summary: 'Like plan, but exit with 2 if anything differs: for CI',
      examples: ['limits diff -f limits.yaml'],
    }),
  ).action(onFile(context, async () => (await load()).diffLimits));
  addVerb(limits, {
    usage: 'export',
    summary: 'Write the file of everything that the namespace has',
    examples: ['limits export', 'limits export -o limits.yaml', 'limits export --namespace acme --json'],
  })
    .option('-o, --output <file>', 'write to this file instead of standard output')
    .action(onStore(context, async () => (await load()).exportLimits));
}

function addFile(command: Command): Command {
  return command.requiredOption('-f, --file <file>', 'the limits file: YAML or JSON; - reads standard input');
}

/** Reads the file before the store is opened: it names the namespace. */
function onFile({ terminal }: CommandContext, loadAction: () => Promise<LimitsAction>) {
  return async (...called: unknown[]): Promise<void> => {
    const options = (called.at(-1) as Command).optsWithGlobals<GlobalOptions & { readonly file: string }>();
    const [{ readManifestFile }, { runOnStore }, action] = await Promise.all([
      import('../manifest-file.js'),
      import('../run-command.js'),
      loadAction(),
    ]);
    const manifest = await readManifestFile(options.file, terminal.stdin);
    const namespace = manifest.namespaceFor(options.namespace);
    await runOnStore(terminal, { ...options, namespace }, async (session) => {
      try {
        return await action(session, manifest);
      } catch (error) {
        throw manifest.explain(error);
      }
    });
  };
}
