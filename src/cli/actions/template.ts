import { stringify } from 'yaml';
import { buildTemplate } from '../../infra/template.js';
import type { TemplateOptions } from '../commands/template.js';
import type { Result } from '../result.js';
import type { TemplateShape } from '../shapes.js';

/**
 * CloudFormation reads YAML 1.1, in which a bare date is no text. It takes 51,200 bytes of a file at most.
 */
export function printTemplate({ format }: TemplateOptions): Result<TemplateShape> {
  const data = buildTemplate();
  const text = () =>
    format === 'json'
      ? lineForEach(data)
      : stringify(data, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
  return { data, text };
}

/** JSON with a line for each parameter, resource and output: indented throughout it would be too large. */
function lineForEach(template: object): string {
  const sections = Object.entries(template).map(([name, section]: [string, unknown]) => {
    if (typeof section !== 'object' || section === null) return ` ${JSON.stringify(name)}: ${JSON.stringify(section)}`;
    const lines = Object.entries(section).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
    return ` ${JSON.stringify(name)}: {\n${lines.join(',\n')}\n }`;
  });
  return `{\n${sections.join(',\n')}\n}`;
}
