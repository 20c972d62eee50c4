import { Option } from 'commander';
import { addExamples, type Definition, withoutStore } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';

/** `--json` of `template`: the CloudFormation template */
export interface TemplateShape {
  readonly AWSTemplateFormatVersion: '2010-09-09';
  readonly Description: string;
  readonly Metadata: object;
  readonly Parameters: object;
  readonly Conditions: object;
  readonly Resources: object;
  readonly Outputs: object;
}

const FORMATS = ['yaml', 'json'] as const;

interface TemplateOptions {
  readonly format: (typeof FORMATS)[number];
}

export const define: Definition = (command, context) => {
  addExamples(command, ['template > headgate.yaml', 'template --format json'])
    .addOption(new Option('--format <format>', 'the format').choices(FORMATS).default('yaml'))
    .action(withoutStore<TemplateOptions>(context, (_, options) => printTemplate(options)));
};

export async function printTemplate({ format }: TemplateOptions): Promise<Result<TemplateShape>> {
  const [{ templateText }, { buildTemplate }] = await Promise.all([
    import('../../stack/template-text.js'),
    import('../../../infra/template.js'),
  ]);
  const data = buildTemplate();
  return { data, text: () => templateText(data, format) };
}
