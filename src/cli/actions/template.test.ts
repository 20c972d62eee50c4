import pc from 'picocolors';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildTemplate } from '../../infra/template.js';
import { printTemplate } from './template.js';

/** CloudFormation takes no larger file without a bucket. */
const MAX_BYTES = 51_200;

test.each(['yaml', 'json'] as const)('the template in %s is the template, and CloudFormation takes it', (format) => {
  const text = printTemplate({ format }).text(pc.createColors(false));
  expect(Buffer.byteLength(text)).toBeLessThan(MAX_BYTES);
  // As CloudFormation reads it: of YAML 1.1, in which a bare `no` or a date are no text.
  expect(parse(text, { version: '1.1' })).toEqual(buildTemplate());
  expect(text).not.toMatch(/[&*]a\d/);
});
