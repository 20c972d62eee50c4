// #region client
import { Limit, RateLimiter } from 'headgate';
import { limitFetch } from 'headgate/llm';
import OpenAI from 'openai';

export const limiter = new RateLimiter(process.env['HEADGATE_URL'] ?? 'memory:', {
  limits: [Limit.perMinute('rpm', 500), Limit.perMinute('tpm', 200_000), Limit.concurrent('slots', 20)],
});

export const limited = limitFetch(fetch, {
  limiter,
  entityId: ({ user }) => user ?? 'anonymous',
  measures: { rpm: 'calls', tpm: 'tokens', slots: 'calls' },
});

const openai = new OpenAI({ fetch: limited });
// #endregion client

// #region stream
/** The answer, piece by piece. Leaving the loop early ends the call: its slot is free, and it costs all that it may have used. */
export async function* answer(user: string, question: string): AsyncGenerator<string> {
  const stream = await openai.chat.completions.create({
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: question }],
    max_completion_tokens: 300,
    safety_identifier: user,
    stream: true,
  });
  for await (const chunk of stream) yield chunk.choices[0]?.delta.content ?? '';
}
// #endregion stream
