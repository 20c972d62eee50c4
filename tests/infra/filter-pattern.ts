type Fields = Readonly<Record<string, unknown>>;

/**
 * Whether a record passes a filter of a Lambda event source. Every field of the pattern must match (one of the values in
 * its list); `$or` needs one of its patterns. Throws on what Lambda would refuse.
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
 */
export function matchesFilter(pattern: unknown, record: unknown): boolean {
  if (!isFields(pattern) || Object.keys(pattern).length === 0) throw new TypeError(`${show(pattern)} is no pattern`);
  return Object.entries(pattern).every(([name, part]) => {
    if (name === '$or') return (part as readonly unknown[]).some((one) => matchesFilter(one, record));
    const value = isFields(record) ? record[name] : undefined;
    if (!Array.isArray(part)) return matchesFilter(part, value);
    if (part.length === 0) throw new TypeError(`the list of ${name} is empty`);
    return part.some((rule) => matchesRule(rule, value));
  });
}

/** One entry of a list in the record must match. Rules apply to leaves, so an object never matches. */
function matchesRule(rule: unknown, value: unknown): boolean {
  if (Array.isArray(value)) return value.some((entry) => matchesRule(rule, entry));
  const isLeaf = value !== undefined && !isFields(value);
  if (!isFields(rule)) return isLeaf && value === rule;
  const [[operator, operand] = ['', undefined], ...more] = Object.entries(rule);
  if (more.length > 0) throw new TypeError(`${show(rule)} has two operators`);
  switch (operator) {
    case 'exists':
      return isLeaf === operand;
    case 'prefix':
      return typeof value === 'string' && value.startsWith(String(operand));
    case 'suffix':
      return typeof value === 'string' && value.endsWith(String(operand));
    case 'equals-ignore-case':
      return typeof value === 'string' && value.toLowerCase() === String(operand).toLowerCase();
    case 'anything-but':
      return isLeaf && ![operand].flat().includes(value);
    case 'numeric':
      return typeof value === 'number' && isWithin(value, operand as readonly (string | number)[]);
    default:
      throw new TypeError(`${operator} is no operator of a filter`);
  }
}

/** `['>', 0, '<=', 5]` */
function isWithin(value: number, [operator, bound, ...rest]: readonly (string | number)[]): boolean {
  if (operator === undefined || bound === undefined) return true;
  const than = Number(bound);
  const holds: Readonly<Record<string, boolean>> = {
    '=': value === than,
    '<': value < than,
    '<=': value <= than,
    '>': value > than,
    '>=': value >= than,
  };
  const first = holds[operator];
  if (first === undefined) throw new TypeError(`${String(operator)} compares nothing`);
  return first && isWithin(value, rest);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}
