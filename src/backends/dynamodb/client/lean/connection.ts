import type { Socket } from 'node:net';
import type { Deadline } from '../../../../machine-time.js';
import { AnswerReader, type HttpAnswer } from './answer-reader.js';

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
