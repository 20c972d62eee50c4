import { addVerb, type CommandContext, withoutStore } from '../define-command.js';
import type { VersionShape } from '../shapes.js';

export function addVersionCommand(context: CommandContext): void {
  const { version } = context;
  addVerb(context.program, {
    usage: 'version',
    summary: 'Show the version of Headgate and of Node',
    examples: ['version', 'version --json'],
  }).action(
    withoutStore(context, async () => async () => {
      const data: VersionShape = { version, node: process.versions.node };
      return { data, text: () => `headgate ${data.version} (Node ${data.node})` };
    }),
  );
}
