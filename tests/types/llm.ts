import type { LanguageModelMiddleware as Middleware6 } from 'ai6';
import type { LanguageModelMiddleware as Middleware7 } from 'ai7';
import { Limit, RateLimiter } from '../../src/index.js';
import { limitFetch, limitModel } from '../../src/integrations/llm/index.js';

const limits = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 10_000)];

/** A limiter whose limit names the compiler knows. */
export const limiter = await RateLimiter.open('memory:', { limits });

/** The wrapped function is accepted wherever `fetch` is. */
export const limited: typeof fetch = limitFetch(fetch, { limiter, entityId: 'user-1' });

/** One middleware is accepted by both versions of the AI SDK. */
export const six: Middleware6 = limitModel({ limiter, entityId: ({ model }) => model });
export const seven: Middleware7 = limitModel({ limiter, entityId: 'user-1', measures: { tpm: 'output-tokens' } });

// @ts-expect-error: not a measure.
limitFetch(fetch, { limiter, entityId: 'user-1', measures: { tpm: 'words' } });

// @ts-expect-error: not an option.
limitModel({ limiter, entityId: 'user-1', includeUsage: true });
