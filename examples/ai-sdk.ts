// #region model
// In your project the packages are `ai` and `@ai-sdk/openai`: version 6 or 7.
import { generateText, streamText, wrapLanguageModel } from 'ai7';
import { createOpenAI } from 'ai7-openai';
import { Limit, RateLimiter } from 'headgate';
import { limitModel } from 'headgate/llm';

export const limiter = new RateLimiter(process.env['HEADGATE_URL'] ?? 'memory:', {
  limits: [Limit.perMinute('tpm', 200_000), Limit.perDay('budget', 5_000_000)],
});

// 5 dollars a day, in micro-dollars. A price is in dollars for a million tokens, which is micro-dollars for one.
export const limits = limitModel({
  limiter,
  entityId: 'team-search',
  measures: { tpm: 'tokens', budget: 'microdollars' },
  prices: { 'gpt-4o-mini': { input: 0.15, output: 0.6, cachedInput: 0.075 } },
});

const model = wrapLanguageModel({ model: createOpenAI()('gpt-4o-mini'), middleware: limits });
// #endregion model

export async function summarise(text: string): Promise<string> {
  const { text: summary } = await generateText({ model, prompt: `Summarise: ${text}`, maxOutputTokens: 200 });
  return summary;
}

export function tell(topic: string, signal: AbortSignal): AsyncIterable<string> {
  return streamText({ model, prompt: `Tell me about ${topic}`, maxOutputTokens: 400, abortSignal: signal }).textStream;
}
