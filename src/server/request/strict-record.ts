import * as v from 'valibot';

/** The keys that `v.record` leaves out, because assigning them could change a prototype. These two are plain names in JSON. */
const PLAIN_NAMES = ['constructor', 'prototype'] as const;
const REFUSED = '__proto__';

/**
 * Like `v.record`, but leaves no key out: an ask must not be granted without one of its amounts. A limit may be named
 * `constructor`; `__proto__` is refused.
 */
export function strictRecord<V extends v.GenericSchema>(key: v.GenericSchema<string>, value: V) {
  const record = v.record(key, value);
  const run: (typeof record)['~run'] = (dataset, config) => {
    const input = dataset.value;
    if (typeof input !== 'object' || input === null) return record['~run'](dataset, config);
    if (Object.hasOwn(input, REFUSED)) {
      // oxlint-disable-next-line eslint/no-underscore-dangle -- valibot exports no other way to add an issue in a schema
      v._addIssue(record, 'key', dataset, config, { expected: `an object without the key ${REFUSED}` });
      // A dataset with an issue is a failure; its type does not know of the issue yet.
      return dataset as unknown as ReturnType<(typeof record)['~run']>;
    }
    const names = PLAIN_NAMES.filter((name) => Object.hasOwn(input, name));
    const result = record['~run'](dataset, config);
    for (const name of names) addEntry(result as Result, value, input as Record<string, unknown>, name, config);
    return result;
  };
  return { ...record, '~run': run };
}

interface Result {
  typed: boolean;
  value: unknown;
  issues?: v.BaseIssue<unknown>[];
}

function addEntry(
  result: Result,
  schema: v.GenericSchema,
  input: Readonly<Record<string, unknown>>,
  name: string,
  config: v.Config<v.BaseIssue<unknown>>,
): void {
  const entry = schema['~run']({ value: input[name] }, config);
  const at: v.ObjectPathItem = { type: 'object', origin: 'value', input: { ...input }, key: name, value: input[name] };
  for (const issue of entry.issues ?? []) {
    result.issues = [...(result.issues ?? []), { ...issue, path: [at, ...(issue.path ?? [])] }];
  }
  if (entry.typed) (result.value as Record<string, unknown>)[name] = entry.value;
  else result.typed = false;
}
