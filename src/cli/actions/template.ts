import { stringify } from 'yaml';
import { buildTemplate } from '../../infra/template.js';
import type { TemplateOptions } from '../commands/template.js';
import type { Result } from '../result.js';
import type { TemplateShape } from '../shapes.js';

/**
 * CloudFormation reads YAML 1.1, in which a bare date is no text. It takes 51,200 bytes of a file at most: for JSON that
 * leaves no room for indentation.
 */
export function printTemplate({ format }: TemplateOptions): Result<TemplateShape> {
  const data = buildTemplate();
  const text = () =>
    format === 'json'
      ? JSON.stringify(data)
      : stringify(data, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
  return { data, text };
}
