import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { takeOne } from './dynamodb-peers.js';
import type { Contender } from './race.js';

const CONNECTIONS = 64;
const HEAD_END = '\r\n\r\n';

/**
 * Sends the request of `bareBucket` as bytes that were made before, and only counts the bytes of its answers. The engine
 * reads the header of the signature and does not verify it. It takes so little CPU that the engine limits it: no client can
 * get more answers from the engine.
 */
export async function bareSockets(
  endpoint: string,
  keys: readonly string[],
): Promise<AsyncDisposable & { readonly contender: Contender }> {
  const { host, hostname, port } = new URL(endpoint);
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, async () => open(Number(port), hostname)));
  const requests = new Map(keys.map((key) => [key, requestOf(host, key)]));
  const idle = [...sockets];
  const waiting: ((socket: Socket) => void)[] = [];
  return {
    async contender(key) {
      const socket = idle.pop() ?? (await new Promise<Socket>((resolve) => waiting.push(resolve)));
      socket.write(requests.get(key) ?? '');
      await readAnswer(socket);
      const next = waiting.shift();
      if (next === undefined) idle.push(socket);
      else next(socket);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function open(port: number, host: string): Promise<Socket> {
  const socket = connect({ port, host, noDelay: true });
  await once(socket, 'connect');
  return socket;
}

function requestOf(host: string, key: string): Buffer {
  const body = JSON.stringify(takeOne(`bucket#${key}`, 'b_rph_tk', 'b_tph_tk'));
  const lines = [
    'POST / HTTP/1.1',
    `host: ${host}`,
    'content-type: application/x-amz-json-1.0',
    'x-amz-date: 20270115T080000Z',
    'x-amz-target: DynamoDB_20120810.UpdateItem',
    'authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20270115/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=00',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}${HEAD_END}${body}`);
}

async function readAnswer(socket: Socket): Promise<void> {
  let text = '';
  await new Promise<void>((resolve, reject) => {
    const receive = (bytes: Buffer): void => {
      text += bytes.toString('latin1');
      const end = text.indexOf(HEAD_END);
      const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? [];
      if (end < 0 || text.length < end + HEAD_END.length + Number(length)) return;
      socket.off('data', receive);
      if (text.startsWith('HTTP/1.1 200 ')) resolve();
      else reject(new Error(`Expected an answer with status 200, got ${text}`));
    };
    socket.on('data', receive);
  });
}
