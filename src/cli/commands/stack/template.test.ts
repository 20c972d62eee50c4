import pc from 'picocolors';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildTemplate } from '../../../infra/template.js';
import { printTemplate } from './template.js';

/** CloudFormation reads a larger file only from a bucket. */
const MAX_BYTES = 51_200;

test.each(['yaml', 'json'] as const)(
  'the template printed as %s is complete and small enough for CloudFormation',
  async (format) => {
    const result = await printTemplate({ format });
    const text = result.text(pc.createColors(false));
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_BYTES);
    // CloudFormation reads YAML 1.1, in which a bare `no` or a bare date is not text.
    expect(parse(text, { version: '1.1' })).toEqual(buildTemplate());
    expect(text).not.toMatch(/[&*]a\d/);
  },
);
