import type { Socket } from 'node:net';
import type { Deadline } from '../../../../machine-time.js';

/** An answer of HTTP/1.1. Names of headers are in lower case. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: Buffer;
  /** Whether the connection may be used for another request. */
  readonly keepsOpen: boolean;
}

/** A request and what its sender waits for. */
export interface Exchange {
  /** The whole request, as it is sent. */
  readonly text: string;
  readonly encoding: 'latin1' | 'utf8';
  readonly deadline: Deadline;
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** What a pool does with its connections. */
export interface ConnectionUser {
  /** The connection may be used again. */
  readonly free: (connection: Connection) => void;
  /** Called once, whatever ended the connection. */
  readonly gone: (connection: Connection) => void;
  /** The exchange has its answer or its error. */
  readonly ended: (exchange: Exchange) => void;
}

const KEEP_ALIVE_PROBE_MS = 1_000;

/** One connection to the store, over which requests are sent one after the other. */
export class Connection {
  readonly #user: ConnectionUser;
  readonly #reader = new AnswerReader();
  #socket: Socket | null = null;
  /** Whether it is established, TLS included: only then is anything sent. */
  #isEstablished = false;
  #isGone = false;
  #exchange: Exchange | null;
  /** How long it may be idle. null: until the server ends it. */
  #mayRestMs: number | null = null;

  /** Connects for a first exchange. `first` is sent once the socket is established. */
  constructor(user: ConnectionUser, first: Exchange) {
    this.#user = user;
    this.#exchange = first;
  }

  /** `established`: the event after which the socket can be written. */
  attach(socket: Socket, established: 'connect' | 'secureConnect'): void {
    if (this.#isGone) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.once(established, () => {
      this.#isEstablished = true;
      if (this.#exchange !== null) socket.write(this.#exchange.text, this.#exchange.encoding);
    });
    socket.on('data', (bytes) => this.#receive(() => this.#reader.push(bytes)));
    socket.on('end', () => this.#receive(() => this.#reader.end() ?? this.fail(hangUp())));
    socket.on('error', (error) => this.fail(error));
    socket.on('close', () => this.fail(hangUp()));
    socket.on('timeout', () => this.fail(new Error('the connection was idle')));
  }

  send(exchange: Exchange): void {
    this.#exchange = exchange;
    if (this.#mayRestMs !== null) this.#socket?.setTimeout(0);
    this.#socket?.ref().write(exchange.text, exchange.encoding);
  }

  /** Ends the connection, and the exchange that uses it. */
  fail(error: NodeJS.ErrnoException): null {
    if (this.#isGone) return null;
    this.#isGone = true;
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#socket?.destroy();
    if (exchange !== null) {
      exchange.reject(this.#isEstablished ? brokenOff(error) : notEstablished(error));
      this.#user.ended(exchange);
    }
    this.#user.gone(this);
    return null;
  }

  /** Ends the connection because the time of its exchange is over. */
  expire(): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    if (exchange !== null) {
      exchange.reject(this.#isEstablished ? requestEnded() : noConnection('before its deadline'));
      this.#user.ended(exchange);
    }
    this.fail(new Error('the deadline passed'));
  }

  #receive(read: () => HttpAnswer | null): void {
    // The store sends nothing without a request. Taken for the next answer, it would be a wrong one.
    if (this.#exchange === null) return void this.fail(new Error('the connection ended'));
    let answer: HttpAnswer | null;
    try {
      answer = read();
    } catch (error) {
      return void this.fail(error as Error);
    }
    if (answer === null) return undefined;
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#user.ended(exchange);
    // The rest of a request that was answered early would come before the next one.
    if (answer.keepsOpen && this.#socket?.writableLength === 0) this.#rest(answer);
    else this.fail(new Error('the connection ended'));
    exchange.resolve(answer);
    return undefined;
  }

  #rest({ headers }: HttpAnswer): void {
    // Some servers say how long they keep an idle connection open. A request at that very moment would be lost.
    const [, seconds] = /timeout=(\d+)/i.exec(headers['keep-alive'] ?? '') ?? [];
    this.#mayRestMs = seconds === undefined ? null : Number(seconds) * 500;
    if (this.#mayRestMs !== null) this.#socket?.setTimeout(this.#mayRestMs);
    // An idle connection does not keep the process running.
    this.#socket?.unref();
    this.#user.free(this);
  }
}

/** The SDK's error for the same case, which `failureOf` recognises: nothing was sent. */
export function noConnection(when: string): Error {
  const error = new Error(`the request did not establish a connection with the server ${when}`);
  error.name = 'TimeoutError';
  return error;
}

/** The error of `node:http` for a connection that ended before its answer. */
export function hangUp(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

/**
 * The request may have been executed, whatever the error says: a route that is lost later has the code of one that never
 * was, and a broken TLS record has a code of its own.
 */
function brokenOff(cause: NodeJS.ErrnoException): Error {
  if (cause.code === 'ETIMEDOUT') return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: 'ECONNRESET' });
}

/** A server that breaks the handshake may do so only once: the code is that of a broken connection. */
function notEstablished(cause: NodeJS.ErrnoException): Error {
  if (cause.code?.startsWith('ERR_SSL_') !== true) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: 'EPROTO' });
}

/** The error that the SDK throws for an aborted request. */
function requestEnded(): Error {
  const error = new Error('Request aborted');
  error.name = 'AbortError';
  return error;
}

interface Head extends Pick<HttpAnswer, 'status' | 'headers'> {
  readonly keepsOpen: boolean;
}

/** What the next bytes are. */
type Stage = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer' | 'until-end';

const MAX_LINES = 16_384;
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
 * send, and throws at everything else: the request may have been executed, and its answer counts as lost.
 */
export class AnswerReader {
  #stage: Stage = 'head';
  #unread: Buffer = NOTHING;
  #head: Head | null = null;
  #body: Buffer[] = [];
  /** The bytes of the body, or of the chunk, that have not arrived. */
  #missing = 0;

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
    [this.#stage, this.#unread, this.#head, this.#body] = ['head', NOTHING, null, []];
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
  return { stage: 'length', missing: Number(length) };
}

function malformed(why: string): Error {
  return new Error(`the answer is not HTTP/1.1: ${why}`);
}
