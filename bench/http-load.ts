import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AnswerReader } from './http-answers.js';

const CONNECTIONS = 16;
/** The requests in flight of one connection. */
const DEPTH = 32;
/** Each request takes other tokens than the next, so that an answer shows which request it belongs to. */
const TOKENS = [100, 101, 102, 103, 104, 105, 106, 107] as const;

interface Ask {
  readonly tokens: number;
  readonly request: Buffer;
  /** The part of the answer that names the tokens. */
  readonly consumed: Buffer;
}

/** What was granted since the start. */
export interface Granted {
  readonly grants: number;
  readonly tokens: number;
}

/**
 * Asks for one bucket as fast as the server answers: prebuilt requests on plain sockets, many in flight on each. It needs
 * about a tenth of the CPU of a client with `fetch`, so that the server limits the rate.
 */
export class HttpLoad {
  readonly #sockets: Socket[] = [];
  readonly #asks: readonly Ask[];
  readonly #ended: Promise<unknown>;
  #isStopping = false;
  #grants = 0;
  #tokens = 0;

  /** `entityId`: the bucket. */
  constructor(url: string, entityId: string) {
    const { hostname, port, host } = new URL(url);
    this.#asks = TOKENS.map((tokens) => askFor(entityId, tokens, host));
    const drained = Array.from({ length: CONNECTIONS }, () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      this.#sockets.push(socket);
      return this.#drive(socket);
    });
    this.#ended = Promise.all(drained);
    // `runFor` and `stop` throw it. Until they do, it must not end the process.
    this.#ended.catch(() => undefined);
  }

  get granted(): Granted {
    return { grants: this.#grants, tokens: this.#tokens };
  }

  /** Returns after this time. Throws at once if an answer was not a grant, or a connection was closed. */
  async runFor(ms: number): Promise<void> {
    const ending = new AbortController();
    try {
      await Promise.race([delay(ms, undefined, { signal: ending.signal }), this.#ended]);
    } finally {
      ending.abort();
    }
  }

  /** Sends no more, and waits for the answers to what was sent. Throws if an answer was not a grant, or did not come. */
  async stop(): Promise<Granted> {
    this.#isStopping = true;
    try {
      await this.#ended;
    } finally {
      for (const socket of this.#sockets) socket.destroy();
    }
    return this.granted;
  }

  /** Ends when every request has its answer. */
  async #drive(socket: Socket): Promise<void> {
    let sent = 0;
    let answered = 0;
    const send = (count: number): void => {
      if (count === 0) return;
      const requests = Array.from({ length: count }, () => this.#askAt(sent++).request);
      socket.write(Buffer.concat(requests));
    };
    const reader = new AnswerReader((status, body) => {
      this.#count(this.#askAt(answered++), status, body);
    });
    await once(socket, 'connect');
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('close', () => reject(new Error(`The server closed a connection with ${sent - answered} requests`)));
      socket.on('data', (chunk) => {
        const before = answered;
        try {
          reader.read(chunk);
        } catch (error) {
          reject(error);
        }
        if (!this.#isStopping) send(answered - before);
        else if (sent === answered) resolve();
      });
      send(DEPTH);
    });
  }

  #askAt(number: number): Ask {
    return this.#asks[number % this.#asks.length] as Ask;
  }

  #count({ tokens, consumed }: Ask, status: number, body: Buffer): void {
    if (status !== 200 || !body.includes(consumed)) {
      throw new Error(`Expected a grant of ${tokens} tokens, got ${status} ${body.toString()}`);
    }
    this.#grants += 1;
    this.#tokens += tokens;
  }
}

function askFor(entityId: string, tokens: number, host: string): Ask {
  const consume = { rph: 1, tph: tokens };
  const body = JSON.stringify({ entityId, resource: 'gpt-4', consume });
  const head = `POST /v1/acquire HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
  return {
    tokens,
    request: Buffer.from(`${head}\r\n\r\n${body}`),
    consumed: Buffer.from(`"consumed":${JSON.stringify(consume)}`),
  };
}
