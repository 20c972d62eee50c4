import { addExamples, type Definition, withoutStore } from '../../run/define-command.js';

/** `--json` of `version` */
export interface VersionShape {
  readonly version: string;
  readonly node: string;
}

export const define: Definition = (command, context) => {
  addExamples(command, ['version', 'version --json']).action(
    withoutStore(context, async () => {
      const data: VersionShape = { version: context.version, node: process.versions.node };
      return { data, text: () => `headgate ${data.version} (Node ${data.node})` };
    }),
  );
};
