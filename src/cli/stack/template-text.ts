import { stringify } from 'yaml';

/**
 * The template in the given format. CloudFormation reads YAML 1.1, in which a bare date is not text, and accepts at most
 * 51,200 bytes from a file. `yaml` is imported statically: in the build, `import('yaml')` has only a default export.
 */
export function templateText(template: object, format: 'yaml' | 'json'): string {
  return format === 'json'
    ? lineForEach(template)
    : stringify(template, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
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
