/** The forms in which providers refuse the rate of calls. */
export const REFUSAL_FORMATS = [
  'openai',
  'openai-seconds',
  'openai-resets',
  'azure',
  'azure-resets',
  'anthropic',
  'anthropic-resets',
  'anthropic-unified',
  'groq',
  'mistral',
  'openrouter',
  'openrouter-seconds',
  'openrouter-body',
  'google',
  'google-message',
  'bedrock',
] as const;

/** The name of a format in which a provider refuses. */
export type RefusalFormat = (typeof REFUSAL_FORMATS)[number];

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

const MESSAGE = 'Rate limit reached';

/** A refusal that states this wait, as far as its format can. */
export function renderRefusal(format: RefusalFormat, waitMs: number, nowMs: number): Refusal {
  const seconds = String(Math.ceil(waitMs / 1000));
  const untilMs = nowMs + waitMs;
  const openAi = { error: { message: MESSAGE, type: 'tokens', param: null, code: 'rate_limit_exceeded' } };
  const claude = { type: 'error', error: { type: 'rate_limit_error', message: MESSAGE } };
  switch (format) {
    case 'openai':
      return refuse({ ...openAiHeaders('6m0s'), 'retry-after': seconds, 'retry-after-ms': String(waitMs) }, openAi);
    case 'openai-seconds':
      return refuse({ ...openAiHeaders('6m0s'), 'retry-after': seconds }, openAi);
    case 'openai-resets':
      return refuse(openAiHeaders(goDuration(waitMs)), openAi);
    case 'groq':
      return refuse(groqHeaders(goDuration(waitMs)), openAi);
    case 'azure':
      return refuse(
        { 'x-ms-retry-after-ms': String(waitMs), 'retry-after': '-1', 'x-rate-limit-reset-tokens': seconds },
        openAi,
      );
    case 'azure-resets':
      return refuse({ 'retry-after': '0', 'x-rate-limit-reset-tokens': seconds }, openAi);
    case 'anthropic':
      return refuse({ ...claudeHeaders(untilMs), 'retry-after': seconds }, claude);
    case 'anthropic-resets':
      return refuse(claudeHeaders(untilMs), claude);
    case 'anthropic-unified': {
      const names = {
        'anthropic-ratelimit-unified-5h-status': 'rejected',
        'anthropic-ratelimit-unified-7d-status': 'allowed',
      };
      const reset = (afterMs: number) => String(Math.ceil((nowMs + afterMs) / 1000));
      const resets = {
        'anthropic-ratelimit-unified-5h-reset': reset(waitMs),
        'anthropic-ratelimit-unified-7d-reset': reset(604_800_000),
      };
      return refuse({ ...names, ...resets }, claude);
    }
    case 'mistral':
      return refuse(
        { 'x-ratelimit-limit-tokens-minute': '500000', 'x-ratelimit-remaining-tokens-minute': '0' },
        { message: MESSAGE },
      );
    case 'openrouter':
      return refuse(openRouterHeaders(untilMs), openAi);
    case 'openrouter-seconds':
      return refuse(openRouterHeaders(Math.ceil(untilMs / 1000)), openAi);
    case 'openrouter-body': {
      const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(untilMs) };
      return refuse({}, { error: { message: MESSAGE, code: 429, metadata: { headers } } });
    }
    case 'google': {
      const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${waitMs / 1000}s` };
      return refuse({}, google('You exceeded your current quota.', [info]));
    }
    case 'google-message':
      return refuse({}, google(`You exceeded your current quota. Please retry in ${waitMs / 1000}s.`, []));
    case 'bedrock':
      return refuse({ 'x-amzn-errortype': 'ThrottlingException' }, { message: 'Too many requests' }, 400);
  }
}

function refuse(headers: Readonly<Record<string, string>>, body: object, status = 429): Refusal {
  return { status, headers, body };
}

function google(message: string, details: readonly object[]): object {
  return { error: { code: 429, message, status: 'RESOURCE_EXHAUSTED', details } };
}

function openAiHeaders(reset: string): Readonly<Record<string, string>> {
  return {
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '9999',
    'x-ratelimit-reset-requests': '8h1m2s',
    'x-ratelimit-limit-tokens': '30000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': reset,
  };
}

/** Requests are counted by the day, tokens by the minute. */
function groqHeaders(reset: string): Readonly<Record<string, string>> {
  return {
    'x-ratelimit-limit-requests': '14400',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': reset,
    'x-ratelimit-limit-tokens': '18000',
    'x-ratelimit-remaining-tokens': '17997',
    'x-ratelimit-reset-tokens': '7.66s',
  };
}

function openRouterHeaders(reset: number): Readonly<Record<string, string>> {
  return { 'x-ratelimit-limit': '20', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) };
}

function claudeHeaders(untilMs: number): Readonly<Record<string, string>> {
  return {
    'anthropic-ratelimit-requests-remaining': '49',
    'anthropic-ratelimit-requests-reset': new Date(untilMs + 3_600_000).toISOString(),
    'anthropic-ratelimit-output-tokens-remaining': '0',
    // Whole seconds, not earlier than the real end.
    'anthropic-ratelimit-output-tokens-reset': new Date(Math.ceil(untilMs / 1000) * 1000).toISOString(),
  };
}

/** The notation of Go's `time.Duration`: `12ms`, `6m0s`, `2m59.56s`. */
function goDuration(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  return `${minutes === 0 ? '' : `${minutes}m`}${(ms % 60_000) / 1000}s`;
}
