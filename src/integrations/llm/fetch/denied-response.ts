import { isHeadgateError } from '../../../core/errors.js';
import type { RateLimitExceeded } from '../../../core/rate-limit-exceeded.js';
import { rateLimitHeaders } from '../../http/admission/headers.js';
import type { LlmApi } from '../request/llm-call.js';

/** By its code, because the limiter may come from another copy of the package. */
export function isDenial(error: unknown): error is RateLimitExceeded {
  return DENIALS.some((code) => isHeadgateError(error, code));
}

const DENIALS = ['limit.exceeded', 'limit.impossible', 'entity.paused'] as const;

/** Longer waits are ignored by the client of OpenAI, which then asks again early. */
const LONGEST_HEEDED_MS = 60_000;

/**
 * The answer to a call that was denied, in the form of the provider's refusals: clients then wait by themselves for as long
 * as it says. 422: the call is larger than a limit. 403: the entity is paused without an end.
 */
export function deniedResponse(denial: RateLimitExceeded, api: LlmApi): Response {
  const { retryAfterMs, statuses, reason } = denial;
  const status = statusOf(denial);
  const headers = new Headers({ 'content-type': 'application/json', 'x-headgate-reason': reason });
  for (const [name, value] of rateLimitHeaders({ granted: false, statuses, retryAfterMs }, { format: 'draft-10' })) {
    headers.append(name, value);
  }
  if (retryAfterMs === null || retryAfterMs > LONGEST_HEEDED_MS) headers.set('x-should-retry', 'false');
  return new Response(JSON.stringify(bodyOf(denial, status, api)), { status, headers });
}

function statusOf({ code }: RateLimitExceeded): number {
  switch (code) {
    case 'limit.exceeded':
      return 429;
    case 'limit.impossible':
      return 422;
    case 'entity.paused':
      return 403;
  }
}

/** The shapes that the clients of the providers read. */
function bodyOf({ message, code, retryAfterMs }: RateLimitExceeded, status: number, api: LlmApi): object {
  switch (api) {
    case 'anthropic':
      return { type: 'error', error: { type: 'rate_limit_error', message, code } };
    case 'google':
    case 'google-embeddings': {
      const retryInfo = {
        '@type': 'type.googleapis.com/google.rpc.RetryInfo',
        retryDelay: `${(retryAfterMs ?? 0) / 1000}s`,
      };
      const details = retryAfterMs === null ? [] : [retryInfo];
      return { error: { code: status, message, status: 'RESOURCE_EXHAUSTED', details } };
    }
    case 'openai-chat':
    case 'openai-completions':
    case 'openai-embeddings':
    case 'openai-responses':
      return { error: { message, type: 'rate_limit_error', param: null, code } };
  }
}
