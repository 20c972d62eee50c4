import { ReflectionKind } from 'typedoc';

/**
 * The exports, and the methods of exports, that have no comment. Properties and
 * `[Symbol.asyncDispose]` may speak for themselves. A shape such as
 * `FastifyReplyLike` repeats the methods of a framework, which describes them.
 */
export function findUndocumented(symbols) {
  return symbols.flatMap((symbol) => {
    const methods = (symbol.children ?? []).filter(
      ({ name, kind, inheritedFrom }) =>
        kind === ReflectionKind.Method &&
        inheritedFrom === undefined &&
        !name.startsWith('[') &&
        !symbol.name.endsWith('Like'),
    );
    const bare = methods.filter((method) => !isDocumented(method)).map(({ name }) => `${symbol.name}.${name}`);
    return isDocumented(symbol) ? bare : [symbol.name, ...bare];
  });
}

function isDocumented({ comment, signatures = [] }) {
  return [comment, ...signatures.map((signature) => signature.comment)].some((found) => found !== undefined);
}
