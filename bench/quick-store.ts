import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Item, Operations } from '../src/backends/dynamodb/client/transport.js';
import { updated } from './answering-transport.js';
import { FLAGS } from './settings.js';

type UpdateInput = Operations['UpdateItem'][0];
type BatchInput = Operations['BatchWriteItem'][0];

/** The endpoint of a process that runs `serveQuickStore`. */
export class QuickStore implements AsyncDisposable {
  readonly endpoint: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  static async start(engineEndpoint: string): Promise<QuickStore> {
    const child = fork(process.argv[1] ?? '', ['quick-store', engineEndpoint, ...FLAGS]);
    const [port] = (await once(child, 'message')) as [number];
    return new QuickStore(child, port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

/**
 * Answers each update of an item that it has seen, as the engine would if its condition held, and passes everything else on
 * to the engine. It needs a tenth of the engine's CPU, so that the client is what limits the throughput. It checks no
 * condition, so it serves no test.
 */
export async function serveQuickStore(engineEndpoint: string): Promise<void> {
  const items = new Map<string, Item>();
  const remember = (item: Item | undefined): void => {
    if (item?.['PK']?.S !== undefined && item['w'] !== undefined) items.set(item['PK'].S, item);
  };
  const serve = async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const body = await textOf(asked);
    const operation = String(asked.headers['x-amz-target']).split('.')[1];
    const input = JSON.parse(body) as UpdateInput & BatchInput & { readonly Item?: Item };
    const stored = operation === 'UpdateItem' ? items.get(input.Key?.['PK']?.S ?? '') : undefined;
    if (stored !== undefined) {
      const Attributes = updated(stored, input);
      remember(Attributes);
      return send(answer, 200, JSON.stringify({ Attributes }));
    }
    const { status, text } = await passOn(engineEndpoint, asked, body);
    if (status === 200) {
      remember((JSON.parse(text) as { readonly Attributes?: Item }).Attributes);
      remember(input.Item);
      const batches = operation === 'BatchWriteItem' ? Object.values(input.RequestItems ?? {}) : [];
      for (const requests of batches) {
        for (const { PutRequest } of requests) remember(PutRequest?.Item);
      }
    }
    return send(answer, status, text);
  };
  const server = createServer((asked, answer) => void serve(asked, answer));
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => process.exit());
  process.send?.((server.address() as AddressInfo).port);
  await once(server, 'close');
}

async function passOn(
  endpoint: string,
  asked: IncomingMessage,
  body: string,
): Promise<{ status: number; text: string }> {
  const passed = request(endpoint, { method: 'POST', headers: asked.rawHeaders });
  passed.end(body);
  const [answer] = (await once(passed, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, text: await textOf(answer) };
}

async function textOf(stream: IncomingMessage): Promise<string> {
  let text = '';
  stream.setEncoding('utf8');
  for await (const part of stream) text += part as string;
  return text;
}

function send(answer: ServerResponse, status: number, text: string): void {
  answer.writeHead(status, { 'content-type': 'application/x-amz-json-1.0', 'content-length': Buffer.byteLength(text) });
  answer.end(text);
}
