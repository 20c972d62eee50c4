import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request of the SDK, parsed like CloudFormation or Lambda would. */
export interface AwsRequest {
  /** `CreateChangeSet`, `UpdateFunctionCode`, ... */
  readonly action: string;
  /** The fields of a form or of a JSON body. For Lambda also `FunctionName`. */
  readonly params: Readonly<Record<string, string>>;
  /** The endpoint that the request was sent to. */
  readonly endpoint: string;
}

export type AwsAnswer =
  /** The result of the action: XML for CloudFormation, JSON for Lambda. */
  | { readonly result: object }
  /** A file with its bytes. */
  | { readonly bytes: Uint8Array }
  | { readonly error: string; readonly message: string; readonly status?: number }
  /** The connection stays open without an answer. */
  | { readonly hangs: true };

export interface AwsServer extends AsyncDisposable {
  readonly endpoint: string;
  /** All requests, in order. */
  readonly requests: readonly AwsRequest[];
  /** The names of the requested actions, in order. */
  actions(): readonly string[];
}

/** A server for the real SDK, with the query protocol of CloudFormation and the REST protocol of Lambda. */
export async function startAwsServer(
  answer: (request: AwsRequest) => AwsAnswer | Promise<AwsAnswer>,
): Promise<AwsServer> {
  const requests: AwsRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const request = await readRequest(incoming);
      requests.push(request);
      const answered = isDynamoDB(incoming) ? NO_TABLE : await answer(request);
      if (!('hangs' in answered)) send(outgoing, request, answered, isLambda(incoming) || isDynamoDB(incoming));
    })().catch((error: unknown) => outgoing.destroy(error as Error));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    requests,
    actions: () => requests.map(({ action }) => action),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The server has no table: tests use a real engine for tables. */
const NO_TABLE: AwsAnswer = { error: 'ResourceNotFoundException', message: 'Requested resource not found' };

const LAMBDA_PATH = /^\/2015-03-31\/functions\/([^/?]+)(?:\/(configuration|code))?/;
const LAMBDA_ACTIONS: Readonly<Record<string, string>> = {
  code: 'UpdateFunctionCode',
  configuration: 'GetFunctionConfiguration',
};
/** The path under which the simulated Lambda serves code. */
const CODE_PATH = /^\/code\/([^/]+)$/;

function isDynamoDB({ headers }: IncomingMessage): boolean {
  return headers['x-amz-target'] !== undefined;
}

function isLambda({ url = '' }: IncomingMessage): boolean {
  return LAMBDA_PATH.test(url);
}

async function readRequest(incoming: IncomingMessage): Promise<AwsRequest> {
  let body = '';
  for await (const chunk of incoming.setEncoding('utf8')) body += chunk as string;
  const endpoint = `http://${incoming.headers.host ?? ''}`;
  const [, file] = CODE_PATH.exec(incoming.url ?? '') ?? [];
  if (file !== undefined)
    return { action: 'DownloadCode', params: { FunctionName: decodeURIComponent(file) }, endpoint };
  const [, name, part] = LAMBDA_PATH.exec(incoming.url ?? '') ?? [];
  if (name === undefined) {
    const target = incoming.headers['x-amz-target'];
    if (typeof target === 'string') return { action: target.slice(target.indexOf('.') + 1), params: {}, endpoint };
    const { Action = 'none', ...params } = Object.fromEntries(new URLSearchParams(body));
    return { action: Action, params, endpoint };
  }
  const action = LAMBDA_ACTIONS[part ?? ''] ?? 'GetFunction';
  const json = body === '' ? {} : (JSON.parse(body) as Record<string, string>);
  return { action, params: { FunctionName: decodeURIComponent(name), ...json }, endpoint };
}

function send(
  outgoing: ServerResponse,
  { action }: AwsRequest,
  answer: Exclude<AwsAnswer, { hangs: true }>,
  lambda: boolean,
): void {
  if ('bytes' in answer) {
    outgoing.writeHead(200, { 'content-type': 'application/zip' }).end(answer.bytes);
    return;
  }
  const status = 'error' in answer ? (answer.status ?? 400) : 200;
  if (lambda) {
    const body = 'error' in answer ? { __type: answer.error, message: answer.message } : answer.result;
    const type = 'error' in answer ? { 'x-amzn-errortype': answer.error } : {};
    outgoing.writeHead(status, { 'content-type': 'application/json', ...type }).end(JSON.stringify(body));
    return;
  }
  const inner =
    'error' in answer
      ? xml({
          ErrorResponse: { Error: { Type: 'Sender', Code: answer.error, Message: answer.message }, RequestId: 'r' },
        })
      : xml({
          [`${action}Response`]: { [`${action}Result`]: answer.result as Data, ResponseMetadata: { RequestId: 'r' } },
        });
  const root = 'error' in answer ? 'ErrorResponse' : `${action}Response`;
  const spaced = inner.replace(`<${root}>`, `<${root} xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">`);
  outgoing.writeHead(status, { 'content-type': 'text/xml' }).end(spaced);
}

type Data = string | number | boolean | undefined | readonly Data[] | { readonly [name: string]: Data };

/** The query protocol calls the items of a list `member`. */
function xml(value: Data): string {
  if (value === undefined) return '';
  if (isList(value)) return value.map((item) => `<member>${xml(item)}</member>`).join('');
  if (typeof value === 'object') {
    return Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .map(([name, inner]) => `<${name}>${xml(inner)}</${name}>`)
      .join('');
  }
  return String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function isList(value: Data): value is readonly Data[] {
  return Array.isArray(value);
}
