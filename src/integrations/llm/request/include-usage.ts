import { spanOfMember } from './member-span.js';
import { type Fields, isFields } from './read-request.js';

/** Whether the caller wants the chunk that states the usage of a streamed chat completion. */
export function asksForUsage(body: Fields): boolean {
  const options = body['stream_options'];
  return isFields(options) && options['include_usage'] === true;
}

/**
 * The body of a streamed chat completion, with the wish for the chunk that states its usage. The rest of the text stays as
 * it is: JavaScript would round large integers, and large bodies are not written anew for one field.
 */
export function withUsage(text: string, body: Fields): string {
  const options = body['stream_options'];
  const span = spanOfMember(text, 'stream_options');
  if (span === null) {
    const rest = text.slice(text.indexOf('{') + 1);
    return `{"stream_options":{"include_usage":true}${Object.keys(body).length === 0 ? '' : ','}${rest}`;
  }
  const wanted = JSON.stringify({ ...(isFields(options) ? options : {}), include_usage: true });
  return text.slice(0, span.from) + wanted + text.slice(span.to);
}
