/** An answer of HTTP/1.1. Names of headers are in lower case. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: Buffer;
  /** Whether the connection may be used for another request. */
  readonly keepsOpen: boolean;
}

interface Head extends Pick<HttpAnswer, 'status' | 'headers'> {
  readonly keepsOpen: boolean;
}

/** What the next bytes are. */
type Stage = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer' | 'until-end';

const MAX_LINES = 16_384;
/** DynamoDB returns at most 16 MB of items. */
const MAX_BODY = 32 * 2 ** 20;
/** The memory of one piece of a body, beside its bytes. */
const PIECE_BYTES = 128;
const NOTHING = Buffer.alloc(0);
/** A status line and headers. */
const HEAD =
  /^HTTP\/1\.[01] [1-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*$/;
const TRAILER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*$/;
const CLOSES = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,7})[\t ]*(?:;.*)?$/;
const LENGTH = /^\d{1,9}$/;

/**
 * Reads the one answer to a request from the bytes of its connection. It accepts only what RFC 9112 allows a server to
 * send, and no body of more than 32 MB. It throws at everything else: the request may have been executed, and its answer
 * counts as lost.
 */
export class AnswerReader {
  #stage: Stage = 'head';
  #unread: Buffer = NOTHING;
  #head: Head | null = null;
  #body: Buffer[] = [];
  /** The bytes of the body, or of the chunk, that have not arrived. */
  #missing = 0;
  /** The memory that the pieces of the body take. */
  #taken = 0;

  /** Returns the answer when its last byte has arrived, else null. The reader then starts anew. */
  push(bytes: Buffer): HttpAnswer | null {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    while (this.#step()) if (this.#isComplete()) return this.#finish();
    return null;
  }

  /** The server has ended the connection. An answer without a length is complete by that; any other is not. */
  end(): HttpAnswer | null {
    return this.#stage === 'until-end' ? this.#finish() : null;
  }

  /** Returns whether it made progress. */
  #step(): boolean {
    switch (this.#stage) {
      case 'head':
        return this.#readHead();
      case 'length':
      case 'chunk':
      case 'until-end':
        return this.#readBody();
      case 'chunk-size':
        return this.#readChunkSize();
      case 'chunk-end':
        return this.#readLine((line) => {
          if (line !== '') throw malformed('a chunk is longer than its size');
          this.#stage = 'chunk-size';
        });
      case 'trailer':
        return this.#readLine((line) => {
          if (line === '') [this.#stage, this.#missing] = ['length', 0];
          else if (!TRAILER.test(line)) throw malformed('a trailer is not a header');
        });
    }
  }

  #isComplete(): boolean {
    return this.#stage === 'length' && this.#missing === 0;
  }

  #finish(): HttpAnswer {
    const [first = NOTHING] = this.#body;
    const body = this.#body.length > 1 ? Buffer.concat(this.#body) : first;
    const { status, headers, keepsOpen } = this.#head as Head;
    // More bytes than the answer has would be taken for the next answer.
    const answer = { status, headers, body, keepsOpen: keepsOpen && this.#unread.length === 0 };
    [this.#stage, this.#unread, this.#head, this.#body, this.#taken] = ['head', NOTHING, null, [], 0];
    return answer;
  }

  #readHead(): boolean {
    const end = this.#unread.indexOf('\r\n\r\n');
    if (end > MAX_LINES || (end < 0 && this.#unread.length > MAX_LINES)) throw malformed('its headers are too long');
    if (end < 0) return false;
    const head = parseHead(this.#unread.toString('latin1', 0, end));
    this.#unread = this.#unread.subarray(end + 4);
    // The server announces an answer that is still to come. No request here asks for another protocol.
    if (head.status === 101) throw malformed('it changes the protocol');
    if (head.status < 200) return true;
    const framing = framingOf(head);
    this.#stage = framing.stage;
    this.#missing = framing.missing;
    this.#head = framing.stage === 'until-end' ? { ...head, keepsOpen: false } : head;
    return true;
  }

  #readBody(): boolean {
    if (this.#unread.length === 0) return false;
    const bytes = this.#stage === 'until-end' ? this.#unread : this.#unread.subarray(0, this.#missing);
    this.#taken += bytes.length + PIECE_BYTES;
    if (this.#taken > MAX_BODY) throw malformed('its body is too long');
    this.#body.push(bytes);
    this.#unread = this.#unread.subarray(bytes.length);
    this.#missing -= bytes.length;
    if (this.#stage === 'chunk' && this.#missing === 0) this.#stage = 'chunk-end';
    return true;
  }

  #readChunkSize(): boolean {
    return this.#readLine((line) => {
      const [, size] = CHUNK_SIZE.exec(line) ?? [];
      if (size === undefined) throw malformed('a chunk has no size');
      this.#missing = Number.parseInt(size, 16);
      this.#stage = this.#missing === 0 ? 'trailer' : 'chunk';
    });
  }

  #readLine(use: (line: string) => void): boolean {
    const end = this.#unread.indexOf('\r\n');
    if (end > MAX_LINES || (end < 0 && this.#unread.length > MAX_LINES)) throw malformed('a line is too long');
    if (end < 0) return false;
    const line = this.#unread.toString('latin1', 0, end);
    this.#unread = this.#unread.subarray(end + 2);
    use(line);
    return true;
  }
}

function parseHead(text: string): Head {
  if (!HEAD.test(text)) throw malformed('its head has another form');
  const headers = Object.create(null) as Record<string, string>;
  let end = text.indexOf('\r\n');
  while (end >= 0) {
    const start = end + 2;
    const colon = text.indexOf(':', start);
    end = text.indexOf('\r\n', colon);
    const name = text.slice(start, colon).toLowerCase();
    const value = text.slice(colon + 1, end < 0 ? text.length : end).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  // `HTTP/1.1 200`: version and status have fixed places.
  const keepsOpen = text[7] === '1' && !CLOSES.test(headers['connection'] ?? '');
  return { status: Number(text.slice(9, 12)), headers, keepsOpen };
}

/** How the end of the body is found. A length that is given twice, or beside chunks, could be read in two ways. */
function framingOf({ status, headers }: Head): { readonly stage: Stage; readonly missing: number } {
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (status === 204 || status === 304) return { stage: 'length', missing: 0 };
  if (coding !== undefined) {
    if (length !== undefined || coding.toLowerCase() !== 'chunked') throw malformed('the end of its body is not clear');
    return { stage: 'chunk-size', missing: 0 };
  }
  if (length === undefined) return { stage: 'until-end', missing: Number.POSITIVE_INFINITY };
  if (!LENGTH.test(length)) throw malformed('the length of its body is not clear');
  if (Number(length) > MAX_BODY) throw malformed('its body is too long');
  return { stage: 'length', missing: Number(length) };
}

function malformed(why: string): Error {
  return new Error(`the answer is not HTTP/1.1: ${why}`);
}
