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

/** CloudFormation reads YAML 1.1, in which a bare date is not text, and accepts at most 51,200 bytes from a file. */
export async function printTemplate({ format }: TemplateOptions): Promise<Result<TemplateShape>> {
  const [{ stringify }, { buildTemplate }] = await Promise.all([import('yaml'), import('../../../infra/template.js')]);
  const data = buildTemplate();
  const text = () =>
    format === 'json'
      ? lineForEach(data)
      : stringify(data, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
  return { data, text };
}

/** JSON with one line for each parameter, resource and output: fully indented it would exceed the size limit. */
function lineForEach(template: object): string {
  const sections = Object.entries(template).map(([name, section]: [string, unknown]) => {
    if (typeof section !== 'object' || section === null) return ` ${JSON.stringify(name)}: ${JSON.stringify(section)}`;
    const lines = Object.entries(section).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
    return ` ${JSON.stringify(name)}: {\n${lines.join(',\n')}\n }`;
  });
  return `{\n${sections.join(',\n')}\n}`;
}
