import { blocksOf } from '../support/docs/code-blocks.js';

/** The TypeScript block of the README as a program. It is also JavaScript. */
export function readmeProgram(): string {
  return blockOf('README.md', 'ts');
}

/** The output of the program on an empty store, which the README states. */
export const README_OUTPUT = 'Blue light scatters most.\n';

/** The limits file of the first page of the guide, with the limits of the README's example. */
export function firstSeed(): string {
  return blockOf('docs/guide/getting-started.md', 'yaml');
}

/** The first block of a language on a page. */
export function blockOf(page: string, language: string): string {
  const block = blocksOf(page).find((one) => one.language === language);
  if (block === undefined) throw new Error(`${page} has no block of ${language}`);
  return block.text;
}
