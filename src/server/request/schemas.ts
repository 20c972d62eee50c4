import * as v from 'valibot';
import { Limit } from '../../core/limit.js';
import { ValidationError } from '../../core/errors.js';
import { MAX_ENTITY_NAME } from '../../core/identifiers.js';
import { MAX_AMOUNT } from '../../core/units.js';
import { strictRecord } from './strict-record.js';

/** Whole numbers as the library accepts them. */
const amount = (least = 0) => v.pipe(v.number(), v.safeInteger(), v.minValue(least), v.maxValue(MAX_AMOUNT));

const name = (longest: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(longest));

export const entityId = v.pipe(name(256), v.description('The caller: a user, a key, a project.'));
/** Of an entity, for people. */
export const entityName = v.pipe(v.string(), v.maxLength(MAX_ENTITY_NAME));
export const resource = v.pipe(name(128), v.description('What is limited, such as a model.'));
export const namespaceName = v.pipe(name(64), v.description('The tenant.'));

export const amounts = v.pipe(
  strictRecord(name(64), amount()),
  v.description('Whole tokens by the name of the limit.'),
);

export const deltas = v.pipe(
  strictRecord(name(64), amount(-MAX_AMOUNT)),
  v.description('Whole tokens by the name of the limit; negative gives back.'),
);

/** The text form of a limit. The library parses it, so its sentence names what is wrong. */
const limitText = v.pipe(
  v.string(),
  v.maxLength(400),
  v.description('A limit, such as rpm:100/min, tpm:10000/min:50000, slots:20/concurrent or tpm:unlimited.'),
);

export const limitTexts = v.pipe(v.array(limitText), v.maxLength(32));

export function parseLimits(field: string, texts: readonly string[]): Limit[] {
  return texts.map((text, at) => {
    try {
      return Limit.parse(text);
    } catch (error) {
      if (error instanceof ValidationError) throw new ValidationError(`${field}[${at}]`, error.expected, text);
      throw error;
    }
  });
}

const wholeOrNull = v.nullable(v.number());

/** A limit in answers: the text that configures it, and its numbers. */
export const limitView = v.object({
  name: v.string(),
  text: v.string(),
  kind: v.picklist(['rate', 'concurrent', 'unlimited']),
  capacity: v.pipe(wholeOrNull, v.description('null: unlimited.')),
  refillAmount: v.number(),
  refillPeriodMs: v.number(),
});

export type LimitView = v.InferOutput<typeof limitView>;

/** A limit does not change, and the same few are shown in every answer. */
const views = new WeakMap<Limit, LimitView>();

export function viewLimit(limit: Limit): LimitView {
  const known = views.get(limit);
  if (known !== undefined) return known;
  const { name: limitName, kind, capacity, refillAmount, refillPeriodMs } = limit;
  const text = String(limit);
  const view = { name: limitName, text, kind, capacity: finite(capacity), refillAmount, refillPeriodMs };
  views.set(limit, view);
  return view;
}

/** JSON has no infinity: null stands for an unlimited number. */
export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** The pattern of a timestamp allows the 31st of February, which `Date` reads as a day of March. */
function isDay(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number);
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}

export const instant = v.pipe(
  v.string(),
  v.isoTimestamp(),
  v.check(isDay, 'a day of the calendar'),
  v.description('An instant, as ISO 8601 with a time zone.'),
);

/** The parameters of every list. */
export const page = {
  limit: v.optional(
    v.pipe(v.string(), v.regex(/^\d{1,4}$/), v.description('The number of items: 1 to 1000. Default: 100.')),
  ),
  after: v.optional(v.pipe(v.string(), v.regex(/^[ -~]{0,512}$/), v.description('The `next` of the page before.'))),
};

export function pageOptions(query: { readonly limit?: string | undefined; readonly after?: string | undefined }) {
  return {
    ...(query.limit === undefined ? {} : { limit: Number(query.limit) }),
    ...(query.after === undefined ? {} : { after: query.after }),
  };
}

export function pageOf<S extends v.GenericSchema>(item: S) {
  return v.object({
    items: v.array(item),
    next: v.pipe(v.nullable(v.string()), v.description('null: this is the last page.')),
  });
}

type Present<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** The fields that were sent. The library refuses a field that is undefined. */
export function present<T extends object>(body: T): Present<T> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as Present<T>;
}
