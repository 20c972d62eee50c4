import { readFileSync } from 'node:fs';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** What the example leaves to its reader, and what became of it. */
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

/** The example of the README as a program: its first block of TypeScript, which is also JavaScript, as it stands. */
export function readmeProgram(): string {
  return `${BEFORE}${blockOf('ts')}${AFTER}`;
}

/** What the program prints where the store is empty. */
export const README_OUTPUT = { text: 'Hello', granted: true, refusals: [] };

/** The limits file that the README shows. */
export function readmeSeed(): string {
  return blockOf('yaml');
}

function blockOf(language: string): string {
  const [, block] = new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'm').exec(README) ?? [];
  if (block === undefined) throw new Error(`The README has no block of ${language}`);
  return block;
}
