import { forwardable, type RawAnswer } from './forward.js';

/** What becomes of an answer on its way to the client. */
export type BreakAnswer = (answer: RawAnswer) => RawAnswer;

/** What stands in for an answer of the engine, which did not get the request. */
export const UNSERVED: RawAnswer = {
  status: 200,
  headers: ['Content-Type', 'application/x-amz-json-1.0'],
  body: Buffer.alloc(0),
};

export const withoutBody: BreakAnswer = (answer) => replaceBody(answer, '');

export const withBareObject: BreakAnswer = (answer) => replaceBody(answer, '{}');

/** The first half of the body, as long as the header says: it looks complete until it is parsed. */
export const withHalfOfBody: BreakAnswer = (answer) => {
  const { body } = answer;
  return { ...replaceBody(answer, ''), body: body.subarray(0, Math.ceil(body.length / 2)) };
};

/** The page that a proxy or load balancer shows in place of the answer. */
export function asHtmlPage(status: number): BreakAnswer {
  const page = `<!doctype html><html><body><h1>${status}</h1></body></html>`;
  return () => ({ status, headers: ['Content-Type', 'text/html'], body: Buffer.from(page) });
}

/** The checksum was of the engine's own body. */
function replaceBody({ status, headers }: RawAnswer, body: string): RawAnswer {
  return { status, headers: forwardable(headers, ['x-amz-crc32']), body: Buffer.from(body) };
}
