import type { EpochMs } from '../../../core/units.js';
import { at, objectIn, parseJson } from './read-body.js';
import { waitInBody } from './wait-in-body.js';
import { parseWaitMs } from './waits.js';

/** An answer of a provider that may refuse the rate of calls. */
export interface ProviderAnswer {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly headers: Iterable<readonly [name: string, value: string]>;
  /** The text of the body, or its beginning; null: not read. */
  readonly body: string | null;
}

/** What a provider says when it refuses the rate of calls. */
export interface Throttle {
  /** The wait that is stated, from the time of the answer; null: none is. */
  readonly waitMs: number | null;
  /** What is used up, in the provider's words: `tokens`, `requests`, `input-tokens`; null: it does not say. */
  readonly dimension: string | null;
}

/** null: the answer is no refusal of the rate. */
export function parseThrottle(answer: ProviderAnswer, receivedMs: EpochMs): Throttle | null {
  const body = objectIn(parseJson(answer.body));
  if (!isThrottle(answer, body)) return null;
  const nowMs = providerTime(answer.header('date'), receivedMs);
  const inBody = headersInBody(body);
  const dimensions = dimensionsOf([...answer.headers, ...inBody]);
  const usedUp = dimensions.filter(isUsedUp);
  const waitMs =
    statedWait(answer, nowMs) ??
    statedWait({ header: (name) => valueOf(inBody, name) }, nowMs) ??
    waitInBody(body, answer.body) ??
    waitForReset(dimensions, usedUp, nowMs);
  return { waitMs, dimension: usedUp[0]?.name ?? null };
}

/** Whether the wait can be told without the body. */
export function statesWaitInHeaders(answer: Omit<ProviderAnswer, 'body'>): boolean {
  return statedWait(answer, 0) !== null;
}

/**
 * AWS has a throttling error with the status 400. Only its type counts: the message of an error may repeat the text of a
 * caller, who must not be able to pause a key. Denials of Headgate are no provider's.
 */
function isThrottle({ status, header }: ProviderAnswer, body: unknown): boolean {
  if (header('x-headgate-reason') !== null) return false;
  if (status === 429) return true;
  const types = [header('x-amzn-errortype'), at(body, '__type')];
  return status === 400 && types.some((type) => typeof type === 'string' && THROTTLING.test(type));
}

/** Such as `ThrottlingException:http://...` in the header, `com.amazon.coral#ThrottlingException` in the body. */
const THROTTLING = /^(?:[\w.]+#)?ThrottlingException\b/;

/**
 * The provider's clock when it answered, so that instants are right where the clocks differ. It has whole seconds:
 * never too late.
 */
function providerTime(date: string | null, receivedMs: EpochMs): EpochMs {
  const parsed = Date.parse(date ?? '');
  return Number.isNaN(parsed) ? receivedMs : parsed;
}

/** The wait in milliseconds, where it is stated as such, is exact; `retry-after` is rounded. */
function statedWait({ header }: Pick<ProviderAnswer, 'header'>, nowMs: EpochMs): number | null {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = Number(header(name) ?? '');
    if (ms > 0 && Number.isFinite(ms)) return Math.ceil(ms);
  }
  return parseWaitMs(header('retry-after') ?? '', nowMs);
}

/** OpenRouter puts the headers of the provider behind it into the body. */
function headersInBody(body: unknown): readonly (readonly [string, string])[] {
  const headers = at(at(at(body, 'error'), 'metadata'), 'headers');
  if (typeof headers !== 'object' || headers === null) return [];
  return Object.entries(headers).flatMap(([name, value]: [string, unknown]) =>
    typeof value === 'string' || typeof value === 'number' ? [[name, String(value)] as const] : [],
  );
}

function valueOf(headers: readonly (readonly [string, string])[], wanted: string): string | null {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? null;
}

interface Dimension {
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
}

const OPENAI = /^x-rate-?limit-(limit|remaining|reset)(?:-([a-z0-9-]{1,32}))?$/;
const ANTHROPIC = /^anthropic-ratelimit-([a-z0-9-]{1,32}?)-(limit|remaining|reset|status|utilization)$/;

function dimensionsOf(headers: Iterable<readonly [string, string]>): readonly Dimension[] {
  const found = new Map<string, Record<string, string>>();
  const note = (name: string, field: string, value: string): void => {
    found.set(name, { ...found.get(name), [field]: value });
  };
  for (const [header, value] of headers) {
    const lower = header.toLowerCase();
    const openAi = OPENAI.exec(lower);
    if (openAi !== null) note(openAi[2] ?? 'requests', openAi[1] ?? '', value);
    const anthropic = ANTHROPIC.exec(lower);
    if (anthropic !== null) note(anthropic[1] ?? '', anthropic[2] ?? '', value);
  }
  return Array.from(found, ([name, fields]) => ({ name, fields }));
}

function isUsedUp({ fields }: Dimension): boolean {
  const { remaining, status, utilization } = fields;
  return Number(remaining ?? '1') <= 0 || status === 'rejected' || Number(utilization ?? '0') >= 1;
}

/** Only what is used up says how long to wait. If its reset is over or missing, that of another says nothing. */
function waitForReset(dimensions: readonly Dimension[], usedUp: readonly Dimension[], nowMs: EpochMs): number | null {
  if (usedUp.length > 0) return longestReset(usedUp, nowMs);
  // A refused call needs one request, so where requests are left it was its tokens that were too many.
  const tokens = dimensions.filter(({ name }) => name.includes('tokens'));
  return longestReset(tokens, nowMs) ?? longestReset(dimensions, nowMs);
}

function longestReset(dimensions: readonly Dimension[], nowMs: EpochMs): number | null {
  const waits = dimensions.flatMap(({ fields }) => parseWaitMs(fields['reset'] ?? '', nowMs) ?? []);
  return waits.length === 0 ? null : Math.max(...waits);
}
