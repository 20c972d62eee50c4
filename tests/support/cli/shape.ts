/** The problems of a value, each with its place; empty if the value has the shape. */
export type Shape = (value: unknown, place: string) => readonly string[];

const plain =
  (expected: string, is: (value: unknown) => boolean): Shape =>
  (value, place) =>
    is(value) ? [] : [`${place}: expected ${expected}, got ${JSON.stringify(value)}`];

export const text = plain('text', (value) => typeof value === 'string');
export const count = plain('a whole number', (value) => Number.isSafeInteger(value));
export const number = plain('a number', (value) => typeof value === 'number' && Number.isFinite(value));
export const flag = plain('true or false', (value) => typeof value === 'boolean');
export const anything: Shape = (value, place) => (value === undefined ? [`${place}: expected anything`] : []);
export const instant = plain(
  'an ISO 8601 instant in UTC',
  (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
);
export const limit = plain(
  'a limit as text',
  (value) =>
    typeof value === 'string' &&
    /^[A-Za-z][\w.-]*:\d+\/(?:concurrent|\d*(?:ms|sec|min|hour|day)(?::\d+)?)(?:@\d+)?$/.test(value),
);

export const exactly = (...allowed: readonly unknown[]): Shape =>
  plain(`one of ${allowed.map((value) => JSON.stringify(value)).join(', ')}`, (value) => allowed.includes(value));

export const nullable =
  (shape: Shape): Shape =>
  (value, place) =>
    value === null ? [] : shape(value, place);

export const listOf =
  (shape: Shape): Shape =>
  (value, place) =>
    Array.isArray(value)
      ? value.flatMap((item, at) => shape(item, `${place}[${at}]`))
      : [`${place}: expected a list, got ${JSON.stringify(value)}`];

export const mapOf =
  (shape: Shape): Shape =>
  (value, place) =>
    isObject(value)
      ? Object.entries(value).flatMap(([key, item]) => shape(item, `${place}.${key}`))
      : [`${place}: expected an object, got ${JSON.stringify(value)}`];

/** Exactly these fields. */
export const record =
  (fields: Readonly<Record<string, Shape>>): Shape =>
  (value, place) => {
    if (!isObject(value)) return [`${place}: expected an object, got ${JSON.stringify(value)}`];
    const strangers = Object.keys(value).filter((key) => !(key in fields));
    return [
      ...strangers.map((key) => `${place}.${key}: not in the shape`),
      ...Object.entries(fields).flatMap(([key, shape]) => shape(value[key], `${place}.${key}`)),
    ];
  };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
