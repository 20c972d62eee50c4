import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request and its answer on a connection. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/**
 * A client that was gone when its answer arrived resets the connection after one round trip. A later reset says nothing
 * of the answer: load balancers reset connections that are idle.
 */
const RESET_MS = 1_000;

interface Sent {
  readonly giveBack: () => void;
  readonly atMs: number;
}

/** The answers of a connection that were written, and not followed by another request. */
const sentOn = new WeakMap<Socket, Sent[]>();

/** A client that sends another request is not gone. */
export function confirmDelivery({ incoming }: Exchange): void {
  const sent = sentOn.get(incoming.socket);
  if (sent !== undefined && sent.length > 0) sent.length = 0;
}

/**
 * Calls `giveBack` if the client disconnected before it could read the answer. A client that disconnects after it has read
 * the answer keeps what it got.
 */
export function watchDelivery({ incoming, outgoing }: Exchange, giveBack: () => void): void {
  const { socket } = incoming;
  if (outgoing.destroyed || socket.destroyed) return giveBack();
  // Node answers the end of a client's stream with the end of its own, so that a client that half-closes gets no answer.
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) giveBack();
  });
  // Before Node's own listener, which closes a connection that is not kept.
  outgoing.prependOnceListener('finish', () => {
    const sent = sentOn.get(socket) ?? watchSocket(socket);
    sent.push({ giveBack, atMs: performance.now() });
    if (!outgoing.shouldKeepAlive) closeSlowly(socket);
  });
}

function isRecent({ atMs }: Sent): boolean {
  return performance.now() - atMs < RESET_MS;
}

function watchSocket(socket: Socket): Sent[] {
  const sent: Sent[] = [];
  sentOn.set(socket, sent);
  // Before Node's own listener, which ends the stream: after that every write fails.
  socket.prependOnceListener('end', () => {
    if (sent.some(isRecent)) probe(socket);
  });
  socket.once('close', (hadError) => {
    if (!hadError) return;
    for (const one of sent) if (isRecent(one)) one.giveBack();
  });
  return sent;
}

/**
 * Node would close the connection with the answer, and a reset would reach no one. Ends the stream, and awaits the
 * client's end.
 */
function closeSlowly(socket: Socket): void {
  probe(socket);
  socket.destroySoon = () => {
    socket.end();
    const timer = setTimeout(() => socket.destroy(), RESET_MS);
    socket.once('close', () => clearTimeout(timer));
  };
}

/**
 * Writes nothing. If the client has closed its end and then reset the connection because of the answer, Linux reports the end
 * to a reader and the reset only to a writer. The write then fails, which closes the connection with an error.
 */
function probe(socket: Socket): void {
  if (socket.writable) socket.write('');
}
