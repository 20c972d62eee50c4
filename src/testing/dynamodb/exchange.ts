import type { Agent, IncomingMessage } from 'node:http';
import { UNSERVED } from './broken-answers.js';
import { type DynamoAnswer, type DynamoRequest, parseBody } from './dynamo-request.js';
import type { DecisiveFault } from './fault.js';
import { forward, forwardable, type RawAnswer } from './forward.js';
import { joinBatch, splitBatch } from './partial-batch.js';
import { type OpenRecord, parseConsumed } from './request-log.js';

/** One request that passes through the proxy. */
export interface Exchange {
  readonly engine: { readonly endpoint: URL; readonly agent: Agent };
  readonly incoming: IncomingMessage;
  readonly text: Buffer;
  readonly request: DynamoRequest;
  readonly askForCapacity: boolean;
  /** Filled in step by step; null if the proxy does not record. */
  readonly record: OpenRecord | null;
}

/** The operations that can report consumed capacity. */
const REPORTS_CAPACITY =
  /^(?:Put|Update|Delete|Get|BatchGet|BatchWrite)Item$|^Transact(?:Get|Write)Items$|^Query$|^Scan$/;

/** The answer of the engine, changed by the deciding fault if there is one. null: the client gets no answer. */
export async function answerOf(exchange: Exchange, fault: DecisiveFault | undefined): Promise<RawAnswer | null> {
  if (fault === undefined) return forwarded(exchange);
  switch (fault.kind) {
    case 'lose-request':
      return null;
    case 'lose-answer':
      await forwarded(exchange);
      return null;
    case 'answer':
      return ownAnswer(fault.answer(exchange.request));
    case 'break-answer':
      return fault.broken(fault.served ? await forwarded(exchange) : UNSERVED);
    case 'process-only': {
      const batch = splitBatch(exchange.request, fault.count);
      if (batch === null) return forwarded(exchange);
      const answer = await forwarded(exchange, batch.processed);
      return answer.status === 200 ? withBody(answer, joinBatch(parseBody(answer.body), batch)) : answer;
    }
  }
}

async function forwarded(exchange: Exchange, changedBody?: DynamoRequest['body']): Promise<RawAnswer> {
  const { engine, incoming, record } = exchange;
  const answer = await forward(engine, incoming, textFor(exchange, changedBody));
  if (record !== null) {
    record.forwarded = true;
    record.consumed = parseConsumed(parseBody(answer.body));
  }
  return answer;
}

/** The original text if it need not be changed, because some engines verify its signature. */
function textFor({ request, text, askForCapacity }: Exchange, changedBody: DynamoRequest['body'] | undefined): Buffer {
  const asks = askForCapacity && REPORTS_CAPACITY.test(request.operation);
  if (!asks && changedBody === undefined) return text;
  const body = changedBody ?? request.body;
  return Buffer.from(JSON.stringify(asks ? { ...body, ReturnConsumedCapacity: 'INDEXES' } : body));
}

/** Removes the checksum, which is only valid for the engine's own body. */
function withBody({ status, headers }: RawAnswer, body: DynamoAnswer['body']): RawAnswer {
  return { status, headers: forwardable(headers, ['x-amz-crc32']), body: Buffer.from(JSON.stringify(body)) };
}

function ownAnswer({ status, body }: DynamoAnswer): RawAnswer {
  return withBody({ status, headers: ['Content-Type', 'application/x-amz-json-1.0'], body: Buffer.alloc(0) }, body);
}

/** The headers of an answer, with a `Date` that is shifted by `shiftMs` and added if it is missing. */
export function datedHeaders(headers: readonly string[], shiftMs: number, nowMs: number): string[] {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'date');
  const told = at === -1 ? Number.NaN : Date.parse(headers[at + 1] ?? '');
  const dateMs = (Number.isNaN(told) ? nowMs : told) + shiftMs;
  return [...forwardable(headers, ['date']), 'Date', new Date(dateMs).toUTCString()];
}
