import { Option } from 'commander';
import { addVerb, type CommandContext, withoutStore } from '../define-command.js';

const FORMATS = ['yaml', 'json'] as const;

export interface TemplateOptions {
  readonly format: (typeof FORMATS)[number];
}

export function addTemplateCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'template',
    summary: 'Print the CloudFormation template: table, functions, alarms, policies',
    examples: ['template > headgate.yaml', 'template --format json'],
  })
    .addOption(new Option('--format <format>', 'how it is written').choices(FORMATS).default('yaml'))
    .action(
      withoutStore(context, async () => {
        const { printTemplate } = await import('../actions/template.js');
        return async (_, options) => printTemplate(options as TemplateOptions);
      }),
    );
}
