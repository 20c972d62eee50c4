import { ReflectionKind } from 'typedoc';
import { renderSymbol } from './render-symbol.js';

const GROUPS = [
  { group: 'Classes', kinds: [ReflectionKind.Class] },
  { group: 'Functions', kinds: [ReflectionKind.Function] },
  { group: 'Values', kinds: [ReflectionKind.Variable] },
  { group: 'Types', kinds: [ReflectionKind.Interface, ReflectionKind.TypeAlias] },
];

/** One page: a list of what it contains, then a section for each export. */
export async function renderPage(page, links) {
  const { title, intro, specifier, symbols } = page;
  const sections = await Promise.all(symbols.map((symbol) => renderSymbol(symbol, links)));
  const parts = [
    `# ${title}`,
    intro,
    `\`\`\`ts\nimport { ${exampleOf(page, symbols)} } from '${specifier}';\n\`\`\``,
    contentsOf(symbols, links),
    alsoExported(page, links),
    ...sections.flat(),
  ];
  return parts.filter(Boolean).join('\n\n');
}

/** What the page names first, then by group and alphabet. */
export function sortSymbols(symbols, first) {
  const rank = ({ name, kind }) => {
    const at = first.indexOf(name);
    return at === -1 ? first.length + GROUPS.findIndex(({ kinds }) => kinds.includes(kind)) : at;
  };
  return symbols.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

function isValue({ kind }) {
  return kind !== ReflectionKind.Interface && kind !== ReflectionKind.TypeAlias;
}

function exampleOf({ references }, symbols) {
  const value = symbols.find(isValue) ?? references.find(({ name }) => /^[a-z]/.test(name) && name !== 'ipKey');
  return value?.name ?? `type ${symbols[0].name}`;
}

function contentsOf(symbols, links) {
  const lines = GROUPS.flatMap(({ group, kinds }) => {
    const found = symbols.filter(({ kind }) => kinds.includes(kind));
    const listed = found.map((symbol) => `[${symbol.name}](${links.hrefOf(symbol)})`);
    return found.length === 0 ? [] : [`- ${group}: ${listed.join(', ')}`];
  });
  return symbols.length > 1 ? lines.join('\n') : '';
}

/** Exports that another page describes. */
function alsoExported({ references }, links) {
  if (references.length === 0) return '';
  const described = references.map((reference) => {
    const target = reference.getTargetReflectionDeep();
    const link = `[\`${target.name}\`](${links.hrefOf(target)})`;
    return reference.name === target.name ? link : `\`${reference.name}\` (which is ${link})`;
  });
  return `Also exported here, and described on other pages: ${described.join(', ')}.`;
}
