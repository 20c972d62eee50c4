/** A page of `docs/reference/` that is made from the sources. */
export interface Page {
  readonly file: string;
  readonly text: string;
}

const BANNER =
  '<!-- Generated from the sources by `npm run docs:reference`: do not edit. tools/reference/ writes this page. -->';

export function pageOf(file: string, parts: readonly string[]): Page {
  return { file, text: `${[BANNER, ...parts].join('\n\n')}\n` };
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
