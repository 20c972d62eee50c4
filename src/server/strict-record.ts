import * as v from 'valibot';

/** The keys that `v.record` leaves out, because assigning them could change a prototype. */
const LEFT_OUT = ['__proto__', 'constructor', 'prototype'] as const;

/** Like `v.record`, but refuses the keys that `v.record` leaves out: an ask must not be granted without one of its amounts. */
export function strictRecord<V extends v.GenericSchema>(key: v.GenericSchema<string>, value: V) {
  const record = v.record(key, value);
  const run: (typeof record)['~run'] = (dataset, config) => {
    const input = dataset.value;
    const found = typeof input === 'object' && input !== null && LEFT_OUT.find((name) => Object.hasOwn(input, name));
    if (typeof found !== 'string') return record['~run'](dataset, config);
    // oxlint-disable-next-line eslint/no-underscore-dangle -- valibot exports no other way to add an issue in a schema
    v._addIssue(record, 'key', dataset, config, { expected: `an object without the key ${found}` });
    // A dataset with an issue is a failure; its type does not know of the issue yet.
    return dataset as unknown as ReturnType<(typeof record)['~run']>;
  };
  return { ...record, '~run': run };
}
