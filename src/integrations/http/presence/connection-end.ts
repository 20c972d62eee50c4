import type { Socket } from 'node:net';

/** What is called when a connection closes, with one listener for each connection: it may carry many requests. */
const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls a function when the connection of a request closes, unless the returned function was called before. A client may send
 * requests before it has the answers to earlier ones, and Node tells the end of the connection only to the response that it is
 * writing. `socket`: servers that have none, such as adapters of Lambda and injected requests, give an object without events, or nothing.
 */
export function whenConnectionCloses(socket: Socket | null | undefined, then: () => void): () => void {
  if (typeof socket?.once !== 'function') return () => {};
  const known = waiting.get(socket);
  const others = known ?? new Set();
  if (known === undefined) {
    waiting.set(socket, others);
    socket.once('close', () => {
      for (const one of others) one();
    });
  }
  others.add(then);
  return () => void others.delete(then);
}
