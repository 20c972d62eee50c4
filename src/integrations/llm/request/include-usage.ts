import { type Fields, isFields } from './read-request.js';

/** Whether the caller wants the chunk that states the usage of a streamed chat completion. */
export function asksForUsage(body: Fields): boolean {
  const options = body['stream_options'];
  return isFields(options) && options['include_usage'] === true;
}

/** The body of a streamed chat completion, with the wish for the chunk that states its usage. */
export function withUsage(text: string, body: Fields): string {
  const options = body['stream_options'];
  if (options === undefined) {
    // Large bodies are not written anew for one field.
    const rest = text.slice(text.indexOf('{') + 1);
    return `{"stream_options":{"include_usage":true}${Object.keys(body).length === 0 ? '' : ','}${rest}`;
  }
  return JSON.stringify({ ...body, stream_options: { ...(isFields(options) ? options : {}), include_usage: true } });
}
