import { type Deadline, timeLeftMs } from '../../../../machine-time.js';
import type { HttpAnswer } from './answer-reader.js';
import { Connection, type Exchange, hangUp, noConnection, notEstablished } from './connection.js';
import { Dialer, type DialOptions } from './dial.js';

const MAX_CONNECTIONS = 256;
/** The longest time of a timer of Node. */
const MAX_TIMER_MS = 2_147_483_647;

/** Connections to one endpoint, kept open between requests, through a proxy if there is one. */
export class Connections {
  readonly #dialer: Dialer;
  /** The last one was used most recently, and is used next. */
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** Those that may not be established. The first one was opened first. */
  readonly #connecting = new Set<Connection>();
  /** Exchanges that wait for a connection. */
  readonly #waiting: Exchange[] = [];
  /** Exchanges without an answer, each with its connection; null while it waits for one. */
  readonly #pending = new Map<Exchange, Connection | null>();
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #timerEnds: Deadline = Number.POSITIVE_INFINITY;

  constructor(endpoint: URL, proxy: URL | null, options: DialOptions = {}) {
    this.#dialer = new Dialer(endpoint, proxy, options);
  }

  /**
   * Sends a request once, and reads its whole answer. At the deadline the connection is destroyed. `lines` are headers that
   * `headerLines` made, without the length of the body.
   */
  post(lines: string, body: string, deadline: Deadline): Promise<HttpAnswer> {
    const length = Buffer.byteLength(body);
    const text = `${this.#dialer.start}${lines}\r\ncontent-length: ${length}\r\n\r\n${body}`;
    // Text of ASCII has the same bytes in both encodings, and node copies it faster as Latin-1.
    const encoding = length === body.length ? 'latin1' : 'utf8';
    return new Promise((resolve, reject) => {
      const exchange: Exchange = { text, encoding, deadline, resolve, reject };
      this.#pending.set(exchange, null);
      if (deadline < this.#timerEnds) this.#setTimer(deadline);
      this.#assign(exchange);
    });
  }

  /** Ends all connections. Later requests are refused: they were started before, and no later `close` would end theirs. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#all) connection.fail(hangUp());
  }

  #assign(exchange: Exchange): void {
    const idle = this.#takeIdle();
    if (this.#isClosed) {
      this.#pending.delete(exchange);
      exchange.reject(notEstablished(hangUp()));
    } else if (idle !== undefined) {
      this.#pending.set(exchange, idle);
      idle.send(exchange);
    } else if (this.#all.size < MAX_CONNECTIONS) this.#open(exchange);
    else this.#waiting.push(exchange);
  }

  #open(exchange: Exchange): void {
    const connection = new Connection(
      {
        free: (one) => this.#use(one),
        gone: (one, silentSince) => this.#forget(one, silentSince),
        ended: (one) => void this.#pending.delete(one),
      },
      exchange,
    );
    this.#all.add(connection);
    this.#connecting.add(connection);
    this.#pending.set(exchange, connection);
    try {
      this.#dialer.dial(connection);
    } catch (error) {
      connection.fail(error as Error);
    }
  }

  /** Gives a connection that may be used to the exchange that arrived first. */
  #use(connection: Connection): void {
    const next = this.#takeUnsent() ?? this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else {
      this.#pending.set(next, connection);
      connection.send(next);
    }
  }

  /** The first exchange whose connection is not established: a SYN that was lost must not delay it. */
  #takeUnsent(): Exchange | undefined {
    for (const connection of this.#connecting) {
      this.#connecting.delete(connection);
      const exchange = connection.release();
      if (exchange !== null) return exchange;
    }
    return undefined;
  }

  /** The connection that was used last. If that one is too old, all of them are. */
  #takeIdle(): Connection | undefined {
    if (this.#idle.at(-1)?.isTooOld() === true) for (const old of this.#idle.splice(0)) old.fail(hangUp());
    return this.#idle.pop();
  }

  /** `silentSince`: it ended without an answer to this exchange, as all may have that were idle before. */
  #forget(connection: Connection, silentSince: number | null): void {
    this.#all.delete(connection);
    this.#connecting.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    if (silentSince !== null) {
      for (const idle of this.#idle.filter(({ freeAfter }) => freeAfter < silentSince)) idle.fail(hangUp());
    }
    const next = this.#waiting.shift();
    if (next !== undefined) this.#assign(next);
  }

  /** One timer for all exchanges: most of them end long before their deadline. */
  #setTimer(ends: Deadline): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerEnds = ends;
    const delayMs = Math.min(Math.max(1, Math.ceil(timeLeftMs(ends))), MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#expire(), delayMs);
    // The connections keep the process running.
    this.#timer.unref();
  }

  #expire(): void {
    this.#timer = null;
    this.#timerEnds = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const [exchange, connection] of this.#pending) {
      if (timeLeftMs(exchange.deadline) > 0) next = Math.min(next, exchange.deadline);
      else if (connection !== null) connection.expire();
      else {
        this.#pending.delete(exchange);
        this.#waiting.splice(this.#waiting.indexOf(exchange), 1);
        exchange.reject(noConnection('before its deadline'));
      }
    }
    if (next < this.#timerEnds) this.#setTimer(next);
  }
}

/** A line break in a value would start another header. */
const NOT_IN_A_VALUE = /[^\t\x20-\x7e]/;

/** Throws if a header could not be sent as it is. Each name is followed by its value. */
export function headerLines(headers: readonly string[]): string {
  const lines: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    if (NOT_IN_A_VALUE.test(value)) throw new TypeError(`Invalid character in the header ${name}`);
    lines.push(`${name}: ${value}`);
  }
  return lines.join('\r\n');
}
