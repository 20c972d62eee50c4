import { readFileSync } from 'node:fs';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The functions that the example leaves to its reader, and the output of the result. */
const BEFORE = `
const callModel = async () => ({ text: 'Hello', usage: { total: 700 } });
const refusals = [];
const respond429 = (...refusal) => refusals.push(refusal);
`;
const AFTER = `
if (decision.granted) await decision.lease.commit();
console.log(JSON.stringify({ text, granted: decision.granted, refusals }));
await limiter.close();
`;

/** The first TypeScript block of the README as a program. It is also JavaScript. */
export function readmeProgram(): string {
  return `${BEFORE}${blockOf('ts')}${AFTER}`;
}

/** The output of the program on an empty store. */
export const README_OUTPUT = { text: 'Hello', granted: true, refusals: [] };

/** The limits file of the README. */
export function readmeSeed(): string {
  return blockOf('yaml');
}

function blockOf(language: string): string {
  const [, block] = new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'm').exec(README) ?? [];
  if (block === undefined) throw new Error(`The README has no block of ${language}`);
  return block;
}
