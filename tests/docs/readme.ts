import { blocksOf } from '../support/docs/code-blocks.js';

/** The functions that the example leaves to its reader, and the output of the result. */
const BEFORE = `
const answers = [];
const callModel = async () => ({ text: 'Hello', usage: { total_tokens: 700 } });
const respond = (text) => answers.push(text);
const respond429 = (...denial) => answers.push(denial);
`;
const AFTER = `
console.log(JSON.stringify(answers));
await limiter.close();
`;

/** The TypeScript block of the README as a program. It is also JavaScript. */
export function readmeProgram(): string {
  return `${BEFORE}${blockOf('ts')}${AFTER}`;
}

/** The output of the program on an empty store. */
export const README_OUTPUT = ['Hello'];

/** The limits file of the README. */
export function readmeSeed(): string {
  return blockOf('yaml');
}

function blockOf(language: string): string {
  const block = blocksOf('README.md').find((one) => one.language === language);
  if (block === undefined) throw new Error(`The README has no block of ${language}`);
  return block.text;
}
