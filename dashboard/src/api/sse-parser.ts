/** Called with each event: its type and the text of its data. */
type OnEvent = (type: string, data: string) => void;

/** No event of a server is longer. A stream without line breaks must not fill the memory. */
const MAX_BUFFERED = 1_000_000;

/** Reads server-sent events from pieces of text, which may break anywhere. Comments are ignored. */
export class SseParser {
  readonly #onEvent: OnEvent;
  #rest = '';
  #type = '';
  #data: string[] = [];

  constructor(onEvent: OnEvent) {
    this.#onEvent = onEvent;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > MAX_BUFFERED) throw new Error('The event stream has a line that is too long');
    for (const line of lines) this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
  }

  #line(line: string): void {
    if (line === '') {
      if (this.#data.length > 0) this.#onEvent(this.#type || 'message', this.#data.join('\n'));
      this.#type = '';
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') this.#type = value;
    else if (field === 'data') this.#data.push(value);
  }
}
