import { admit, checkHttpOptions, type HttpLimitOptions } from './admission.js';
import { addFields } from './response-fields.js';

export { ipKey, type IpKeyOptions } from './ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission.js';

/** What the wrapper needs of an event: of API Gateway, REST (version 1) or HTTP (version 2), or of a function URL. */
export interface LambdaHttpEvent {
  readonly requestContext?: {
    readonly http?: { readonly sourceIp?: string };
    readonly identity?: { readonly sourceIp?: string | null };
  };
}

/** The result of a handler, as API Gateway takes it. */
export interface LambdaHttpResult {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: string;
  readonly [more: string]: unknown;
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
  options: HttpLimitOptions<E>,
): (event: E, ...rest: A) => Promise<T | LambdaHttpResult> {
  checkHttpOptions(options);
  return async (event, ...rest) => {
    const admission = await admit(options, { request: event, address: () => addressOf(event) });
    if (admission.kind === 'skipped') return handler(event, ...rest);
    if (admission.kind === 'refused') {
      const { status: statusCode, contentType, body, headers } = admission;
      return withFields({ statusCode, headers: { 'content-type': contentType }, body }, headers);
    }
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

function addressOf({ requestContext }: LambdaHttpEvent): string | null {
  return requestContext?.http?.sourceIp ?? requestContext?.identity?.sourceIp ?? null;
}

function withFields(result: LambdaHttpResult, lines: readonly (readonly [string, string])[]): LambdaHttpResult {
  const headers: Record<string, string | number | boolean> = { ...result.headers };
  // Header names have no case, and those of an object may be written in any.
  const nameIn = (name: string): string =>
    Object.keys(headers).find((present) => present.toLowerCase() === name.toLowerCase()) ?? name;
  addFields(
    {
      get: (name) => headers[nameIn(name)]?.toString(),
      set: (name, value) => {
        headers[nameIn(name)] = value;
      },
    },
    lines,
  );
  return { ...result, headers };
}
