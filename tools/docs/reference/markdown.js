import { format } from 'oxfmt';

/** The text of a TSDoc comment. Lines of one paragraph are joined. */
export function proseOf(comment) {
  const text = (comment?.summary ?? [])
    .map((part) => (part.kind === 'code' ? part.text : part.text.replaceAll('<', '\\<')))
    .join('');
  return text
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.replaceAll(/\s+/g, ' ').trim())
    .filter(Boolean)
    .join('\n\n');
}

/** A table, or no lines where there are no rows. */
export function table(head, rows) {
  if (rows.length === 0) return [];
  return [[line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')];
}

function line(cells) {
  return `| ${cells.map((cell) => cell.replaceAll('\n\n', ' ').replaceAll('|', '\\|')).join(' | ')} |`;
}

/** A block of TypeScript, as the formatter breaks it. */
export async function codeBlock(declarations) {
  return `\`\`\`ts\n${(await formatted(declarations.join('\n'))).replaceAll(/^declare /gm, '')}\n\`\`\``;
}

/** Members of a class, which are not declarations without their class. */
export async function memberBlock(members) {
  const [, ...lines] = (await formatted(`declare class C {\n${members.join(';\n')};\n}`)).split('\n');
  const text = lines
    .slice(0, -1)
    .join('\n')
    .replaceAll(/^ {2}/gm, '')
    .replaceAll(/\n{2,}/g, '\n');
  return `\`\`\`ts\n${text}\n\`\`\``;
}

async function formatted(code) {
  const { code: text, errors } = await format('reference.ts', code, { printWidth: 100, singleQuote: true });
  if (errors.length > 0) throw new Error(`Not TypeScript: ${code}`);
  return text.trimEnd();
}
