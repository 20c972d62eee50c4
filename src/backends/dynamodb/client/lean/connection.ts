import type { Socket } from 'node:net';
import { type Deadline, machineTime } from '../../../../machine-time.js';
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
  /**
   * Called once, whatever ended the connection. `silentSince`: the number of its last exchange, if that is not the first one
   * and no byte has arrived since. null: otherwise.
   */
  readonly gone: (connection: Connection, silentSince: number | null) => void;
  /** The exchange has its answer or its error. */
  readonly ended: (exchange: Exchange) => void;
}

const KEEP_ALIVE_PROBE_MS = 1_000;
/**
 * How long a connection may be idle and then be used. It may have ended silently: the gateway of a network drops a connection
 * that it has not seen used, and a machine that is suspended gets no news of one that the server ended.
 */
const MAX_IDLE_MS = 30_000;
/** The longest time to establish a connection that no exchange waits for. */
const UNUSED_MS = 10_000;
/** How many seconds a server keeps an idle connection open. More digits would be weeks, beyond what a timer can do. */
const KEEPS_OPEN = /(?:^|[\s,;])timeout=(\d{1,6})(?!\d)/i;

/** Numbers the exchanges of all connections, because reading a clock for each takes longer. */
let sends = 0;

/** What a connection needs before it has a socket. */
export interface Destroyable {
  destroy(): unknown;
}

/** One connection to the store, over which requests are sent one after the other. */
export class Connection {
  readonly #user: ConnectionUser;
  readonly #reader = new AnswerReader();
  #socket: Socket | null = null;
  /** Whether it is established, TLS included: only then is anything sent. */
  #isEstablished = false;
  #isGone = false;
  #exchange: Exchange | null;
  /** The request to a proxy for a socket. */
  #asked: Destroyable | null = null;
  /** How long it may be idle. null: until the server ends it. */
  #mayRestMs: number | null = null;
  /** When it became free, by both clocks: either of them may stop while the machine or the process is suspended. */
  #freeAtMs = 0;
  #freeAtWallMs = 0;
  #freeAfter = 0;
  #silentSince: number | null = null;

  /** Connects for a first exchange. `first` is sent once the socket is established. */
  constructor(user: ConnectionUser, first: Exchange) {
    this.#user = user;
    this.#exchange = first;
  }

  /** Begins with a request to a proxy, which ends with the connection. */
  begin(asked: Destroyable): void {
    if (this.#isGone) asked.destroy();
    else this.#asked = asked;
  }

  /** `established`: the event after which the socket can be written. */
  attach(socket: Socket, established: 'connect' | 'secureConnect'): void {
    if (this.#isGone) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    this.#asked = null;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.once(established, () => {
      this.#isEstablished = true;
      if (this.#exchange === null) {
        socket.setTimeout(0);
        this.#rest();
      } else socket.write(this.#exchange.text, this.#exchange.encoding);
    });
    socket.on('data', (bytes) => {
      this.#silentSince = null;
      this.#receive(() => this.#reader.push(bytes));
    });
    socket.on('end', () => this.#receive(() => this.#reader.end() ?? this.fail(hangUp())));
    socket.on('error', (error) => this.fail(error));
    socket.on('close', () => this.fail(hangUp()));
    socket.on('timeout', () => this.fail(new Error('the connection was idle')));
  }

  /** The number of the last exchange that any connection was given before this one became free. */
  get freeAfter(): number {
    return this.#freeAfter;
  }

  /** Whether it may have ended silently. A wall clock that was set back hides for how long it was idle. */
  isTooOld(): boolean {
    const idleMs = machineTime.monotonicMs() - this.#freeAtMs;
    return Math.max(idleMs, Math.abs(machineTime.wallMs() - this.#freeAtWallMs)) > MAX_IDLE_MS;
  }

  /** Gives its exchange, which was not sent, to another connection, and becomes free once it is established. */
  release(): Exchange | null {
    const exchange = this.#exchange;
    // Until a proxy has made a tunnel, there is no socket that could be bounded.
    if (this.#isEstablished || this.#socket === null) return null;
    this.#exchange = null;
    this.#socket.unref().setTimeout(UNUSED_MS);
    return exchange;
  }

  send(exchange: Exchange): void {
    this.#exchange = exchange;
    this.#silentSince = sends += 1;
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
    this.#asked?.destroy();
    if (exchange !== null) {
      exchange.reject(this.#isEstablished ? brokenOff(error) : notEstablished(error));
      this.#user.ended(exchange);
    }
    this.#user.gone(this, this.#silentSince);
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
    exchange.resolve(answer);
    // Some servers say how long they keep an idle connection open. A request at that very moment would be lost.
    const [, seconds] = KEEPS_OPEN.exec(answer.headers['keep-alive'] ?? '') ?? [];
    this.#mayRestMs = seconds === undefined ? null : Number(seconds) * 500;
    // The rest of a request that was answered early would come before the next one.
    if (answer.keepsOpen && this.#mayRestMs !== 0 && this.#socket?.writableLength === 0) this.#rest();
    else this.fail(new Error('the connection ended'));
    return undefined;
  }

  #rest(): void {
    this.#freeAtMs = machineTime.monotonicMs();
    this.#freeAtWallMs = machineTime.wallMs();
    this.#freeAfter = sends;
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

/**
 * Nothing was sent, which `failureOf` reads from the error. A server that breaks the handshake may do so only once: the code
 * is that of a broken connection.
 */
export function notEstablished(cause: NodeJS.ErrnoException): Error {
  if (cause.code?.startsWith('ERR_SSL_') !== true) return Object.assign(cause, { unsent: true });
  return Object.assign(new Error(cause.message, { cause }), { code: 'EPROTO', unsent: true });
}

/** The error that the SDK throws for an aborted request. */
function requestEnded(): Error {
  const error = new Error('Request aborted');
  error.name = 'AbortError';
  return error;
}
