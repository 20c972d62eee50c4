/** Gets the content of server-sent events, in pieces. */
export interface EventListener {
  readonly onData: (text: string) => void;
  /** After the last piece of an event that has data. */
  readonly onEnd: () => void;
}

const MAX_FIELD = 16;
const END_OF_LINE = /[\r\n]/g;

/**
 * Splits a text of server-sent events that comes in pieces. Keeps no more than the name of a field. Lines may end with
 * CR, LF or both. https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export class EventLines {
  readonly #listener: EventListener;
  /** The name of the field so far; null: the line is in its value. */
  #field: string | null = '';
  #isData = false;
  #isValueStart = false;
  #dataLines = 0;
  #hasSeenReturn = false;

  constructor(listener: EventListener) {
    this.#listener = listener;
  }

  write(text: string): void {
    let at = 0;
    while (at < text.length) {
      if (this.#hasSeenReturn) {
        this.#hasSeenReturn = false;
        if (text[at] === '\n') {
          at += 1;
          continue;
        }
      }
      END_OF_LINE.lastIndex = at;
      const end = END_OF_LINE.exec(text)?.index ?? text.length;
      this.#readLine(text.slice(at, end));
      if (end === text.length) return;
      this.#hasSeenReturn = text[end] === '\r';
      this.#endLine();
      at = end + 1;
    }
  }

  /** The end of the body. An event without its empty line counts too. */
  end(): void {
    this.#endLine();
    this.#endEvent();
  }

  #readLine(piece: string): void {
    if (this.#field === null) {
      this.#readValue(piece);
      return;
    }
    const colon = piece.indexOf(':');
    if (this.#field.length <= MAX_FIELD) this.#field += colon < 0 ? piece : piece.slice(0, colon);
    if (colon < 0) return;
    this.#isData = this.#field === 'data';
    this.#field = null;
    this.#isValueStart = true;
    if (this.#isData && this.#dataLines > 0) this.#listener.onData('\n');
    if (this.#isData) this.#dataLines += 1;
    this.#readValue(piece.slice(colon + 1));
  }

  #readValue(piece: string): void {
    if (piece === '') return;
    const value = this.#isValueStart && piece.startsWith(' ') ? piece.slice(1) : piece;
    this.#isValueStart = false;
    if (this.#isData && value !== '') this.#listener.onData(value);
  }

  #endLine(): void {
    if (this.#field === '') this.#endEvent();
    this.#field = '';
    this.#isData = false;
  }

  #endEvent(): void {
    if (this.#dataLines > 0) this.#listener.onEnd();
    this.#dataLines = 0;
  }
}
