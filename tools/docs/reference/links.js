/**
 * Links from names of types to their sections. `anchors`: the file and the anchor of every exported symbol. `known`: the
 * symbol of each exported name that means one thing in all entries.
 */
export function linksFrom(file, anchors, known) {
  const hrefOf = (symbol) => {
    const target = anchors.get(symbol);
    return target.file === file ? `#${target.anchor}` : `${target.file}#${target.anchor}`;
  };
  const link = (name) => `[\`${name}\`](${hrefOf(known.get(name))})`;

  return {
    hrefOf,
    isKnown: (name) => known.has(name),
    /** The type in code font, with a link on each known name. */
    linked(text) {
      const parts = [];
      let rest = '';
      for (const part of text.replaceAll(/\s+/g, ' ').split(NAME)) {
        if (!known.has(part)) rest += part;
        else {
          parts.push(code(rest), link(part));
          rest = '';
        }
      }
      return [...parts, code(rest)].join('');
    },
    /** A line with links to the types that a declaration names, because a block of code has no links. */
    named(text, self) {
      const names = [...new Set(text.split(NAME))].filter((part) => known.has(part) && part !== self.name);
      return names.length === 0 ? [] : [`Types: ${names.map(link).join(', ')}`];
    },
  };
}

/** Text in code font; spaces stay outside. */
function code(text) {
  return text.replace(/^(\s*)(.*?)(\s*)$/s, (_, before, inner, after) => before + (inner && `\`${inner}\``) + after);
}

/** Splits a text into identifiers of types and what is between them. */
const NAME = /(?<![.'\w])([A-Z]\w*)(?![\w'])/;
