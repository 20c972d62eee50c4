export type Values = Readonly<Record<string, number>>;

/**
 * The value of a formula such as `a * (b + 2) / c - 1.5` for known names. Throws on an unknown name and on any other
 * syntax.
 */
export function evaluate(formula: string, values: Values): number {
  const tokens = formula.match(/[A-Za-z]\w*|\d+(?:\.\d+)?|\S/g) ?? [];
  let at = 0;

  const take = (...wanted: readonly string[]): string | null =>
    wanted.includes(tokens[at] ?? '') ? (tokens[at++] ?? null) : null;

  const atom = (): number => {
    if (take('(') !== null) {
      const value = sum();
      if (take(')') === null) throw new SyntaxError(`a bracket is not closed: ${formula}`);
      return value;
    }
    const token = tokens[at++] ?? '';
    const value = /^\d/.test(token) ? Number(token) : values[token];
    if (value === undefined) throw new SyntaxError(`${token} is not known: ${formula}`);
    return value;
  };

  const product = (): number => {
    let value = atom();
    for (let operator = take('*', '/'); operator !== null; operator = take('*', '/')) {
      value = operator === '*' ? value * atom() : value / atom();
    }
    return value;
  };

  const sum = (): number => {
    let value = product();
    for (let operator = take('+', '-'); operator !== null; operator = take('+', '-')) {
      value = operator === '+' ? value + product() : value - product();
    }
    return value;
  };

  const value = sum();
  if (at < tokens.length) throw new SyntaxError(`${tokens[at]} is not expected: ${formula}`);
  return value;
}
