/** The part of JSON Schema that the OpenAPI document uses. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
}

/** One line for a field, with dots for the fields of objects: `wait.timeoutMs`. */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly meaning: string;
}

export function fieldsOf(schema: Schema, depth = Number.POSITIVE_INFINITY, prefix = ''): readonly Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const row: Field = {
      name: prefix + name,
      type: typeText(field),
      isRequired: schema.required?.includes(name) ?? false,
      meaning: field.description ?? '',
    };
    return field.properties === undefined || depth <= 1
      ? [row]
      : [row, ...fieldsOf(field, depth - 1, `${prefix}${name}.`)];
  });
}

/** The type in a few words: `integer, 0 to 100`, `'a' | 'b'`, `{ id, token }`, `list of string`. */
export function typeText(schema: Schema): string {
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined) return [...new Set(options.map(typeText))].join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.items !== undefined) return `list of ${typeText(schema.items)}`;
  if (schema.properties !== undefined) return `{ ${Object.keys(schema.properties).join(', ')} }`;
  if (typeof schema.additionalProperties === 'object') return `{ name: ${typeText(schema.additionalProperties)} }`;
  const type = typeof schema.type === 'string' ? schema.type : (schema.type?.join(' | ') ?? 'any JSON');
  return type + rangeText(schema);
}

/** Bounds that only say what a number can be at all are left out. */
function rangeText({ minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER }: Schema): string {
  const isBelow = maximum < Number.MAX_SAFE_INTEGER;
  if (minimum <= Number.MIN_SAFE_INTEGER) return isBelow ? `, at most ${digits(maximum)}` : '';
  return isBelow ? `, ${digits(minimum)} to ${digits(maximum)}` : `, at least ${digits(minimum)}`;
}

function digits(value: number): string {
  return String(value).replaceAll(/\B(?=(?:\d{3})+$)/g, ' ');
}
