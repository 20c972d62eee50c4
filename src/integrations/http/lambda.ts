import type { Denied } from '../../limiter/acquire/decision.js';
import { type Admission, admit, checkHttpOptions, type HttpLimitOptions } from './admission/admission.js';
import { checkTrustedProxies, forwardedAddress } from './admission/client-address.js';
import { addFields, nameIn } from './admission/response-fields.js';

export { ipKey, type IpKeyOptions } from './admission/ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission/admission.js';

/** What the wrapper needs of an event: of API Gateway, REST (version 1) or HTTP (version 2), or of a function URL. */
export interface LambdaHttpEvent {
  readonly requestContext?: {
    readonly http?: { readonly sourceIp?: string };
    readonly identity?: { readonly sourceIp?: string | null };
  };
  readonly headers?: Readonly<Record<string, string | undefined>> | null;
}

/** The result of a handler, as API Gateway takes it. */
export interface LambdaHttpResult {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  /** Only of version 1. */
  readonly multiValueHeaders?: Readonly<Record<string, readonly (string | number | boolean)[]>>;
  readonly body?: string;
  readonly [more: string]: unknown;
}

export interface LambdaLimitOptions<E extends LambdaHttpEvent> extends HttpLimitOptions<E> {
  /**
   * The number of proxies, such as CloudFront, before API Gateway or the function URL. The address of the client is then
   * the entry that the outermost of them has written to `X-Forwarded-For`. Default: 0, the address that API Gateway has seen.
   */
  readonly trustedProxies?: number;
  /** Answers a refused request. The header fields are added to it. `denial` is null if the store did not answer. */
  readonly handler?: (event: E, denial: Denied | null) => LambdaHttpResult | Promise<LambdaHttpResult>;
}

/**
 * Limits a Lambda function behind API Gateway or a function URL. The lease ends before the result is returned: after
 * that, Lambda may stop the process.
 */
export function withRateLimit<
  E extends LambdaHttpEvent,
  A extends readonly unknown[],
  T extends LambdaHttpResult | string,
>(
  handler: (event: E, ...rest: A) => Promise<T>,
  options: LambdaLimitOptions<E>,
): (event: E, ...rest: A) => Promise<T | LambdaHttpResult> {
  checkHttpOptions(options, ['trustedProxies', 'handler']);
  const { trustedProxies = 0 } = options;
  checkTrustedProxies(trustedProxies);
  return async (event, ...rest) => {
    const admission = await admit(options, { request: event, addresses: () => addressesOf(event, trustedProxies) });
    if (admission.kind === 'skipped') return handler(event, ...rest);
    if (admission.kind === 'refused') return refuse(options, event, admission);
    let result: T;
    try {
      result = await handler(event, ...rest);
    } catch (error) {
      await admission.end(null);
      throw error;
    }
    // A result without a status is the body of an answer with status 200.
    const full: LambdaHttpResult =
      typeof result === 'object' && result !== null && result.statusCode !== undefined
        ? result
        : { statusCode: 200, headers: { 'content-type': 'application/json' }, body: textOf(result) };
    await admission.end(full.statusCode ?? 200);
    return withFields(full, admission.headers);
  };
}

function textOf(result: LambdaHttpResult | string): string {
  return typeof result === 'string' ? result : JSON.stringify(result);
}

async function refuse<E extends LambdaHttpEvent>(
  { handler }: LambdaLimitOptions<E>,
  event: E,
  { status, contentType, body, headers, denial }: Extract<Admission, { kind: 'refused' }>,
): Promise<LambdaHttpResult> {
  const own = await handler?.(event, denial);
  return withFields(own ?? { statusCode: status, headers: { 'content-type': contentType }, body }, headers);
}

/** The test of a method in the console of API Gateway comes from no address. */
const CONSOLE_TEST = 'test-invoke-source-ip';

function addressesOf({ requestContext, headers }: LambdaHttpEvent, trustedProxies: number) {
  const source = requestContext?.http?.sourceIp ?? requestContext?.identity?.sourceIp ?? null;
  if (source === CONSOLE_TEST) return ['127.0.0.1'];
  const name = nameIn(headers ?? {}, 'x-forwarded-for');
  const entries = (headers?.[name] ?? '').split(',').map((entry) => entry.trim());
  // API Gateway appends the address that it has seen, as a proxy does.
  const forwarded = entries.at(-1) === source ? entries.slice(0, -1) : entries;
  return [forwardedAddress(forwarded.join(','), trustedProxies), source];
}

/** A field that stands in `multiValueHeaders` is replaced there: API Gateway sends the values of both places. */
function withFields(result: LambdaHttpResult, lines: readonly (readonly [string, string])[]): LambdaHttpResult {
  const headers: Record<string, string | number | boolean> = { ...result.headers };
  const multiple: Record<string, readonly (string | number | boolean)[]> = { ...result.multiValueHeaders };
  const get = (name: string): string | undefined => {
    const [one, values] = [headers[nameIn(headers, name)], multiple[nameIn(multiple, name)]];
    const present = [...(one === undefined ? [] : [one]), ...(values ?? [])];
    return present.length === 0 ? undefined : present.join(', ');
  };
  const set = (name: string, value: string): void => {
    const inMultiple = nameIn(multiple, name);
    if (multiple[inMultiple] === undefined) {
      headers[nameIn(headers, name)] = value;
      return;
    }
    multiple[inMultiple] = [value];
    delete headers[nameIn(headers, name)];
  };
  addFields({ get, set }, lines);
  return { ...result, headers, ...(result.multiValueHeaders === undefined ? {} : { multiValueHeaders: multiple }) };
}
