import { type Deadline, timeLeftMs } from '../deadline.js';
import { type Connections, noConnection } from './connections.js';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly body: Buffer;
}

/** Sends a request once, and reads its whole answer. At the deadline the connection is destroyed. */
export function post(
  connections: Connections,
  headers: readonly string[],
  body: string,
  deadline: Deadline,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const request = connections.start(headers);
    const timer = setTimeout(
      () => {
        reject(connections.canHaveSent(request) ? requestEnded() : noConnection('before its deadline'));
        request.destroy();
      },
      Math.max(1, Math.ceil(timeLeftMs(deadline))),
    );
    const fail = (error: NodeJS.ErrnoException): void => {
      clearTimeout(timer);
      const isKnownLoss = error.code === 'ETIMEDOUT';
      reject(connections.canHaveSent(request) && !isKnownLoss ? brokenOff(error) : error);
    };
    request.on('error', fail);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        const [first] = chunks;
        const whole = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole });
      });
    });
    request.end(body);
  });
}

/**
 * The request may have been executed, whatever the error says: a route that is lost later has the code of one that never
 * was, and a broken TLS record has a code of its own.
 */
function brokenOff(cause: Error): Error {
  return Object.assign(new Error(cause.message, { cause }), { code: 'ECONNRESET' });
}

/** The error that the SDK throws for an aborted request. */
function requestEnded(): Error {
  const error = new Error('Request aborted');
  error.name = 'AbortError';
  return error;
}
