import { forwardable, type RawAnswer } from './forward.js';

/** Changes an answer before the client gets it. */
export type BreakAnswer = (answer: RawAnswer) => RawAnswer;

/** The answer to change when the engine does not get the request. */
export const UNSERVED: RawAnswer = {
  status: 200,
  headers: ['Content-Type', 'application/x-amz-json-1.0'],
  body: Buffer.alloc(0),
};

export const withoutBody: BreakAnswer = (answer) => replaceBody(answer, '');

export const withBareObject: BreakAnswer = (answer) => replaceBody(answer, '{}');

/** The first half of the body with a matching length header: it looks complete until it is parsed. */
export const withHalfOfBody: BreakAnswer = (answer) => {
  const { body } = answer;
  return { ...replaceBody(answer, ''), body: body.subarray(0, Math.ceil(body.length / 2)) };
};

/** The error page of a proxy or load balancer. */
export function asHtmlPage(status: number): BreakAnswer {
  const page = `<!doctype html><html><body><h1>${status}</h1></body></html>`;
  return () => ({ status, headers: ['Content-Type', 'text/html'], body: Buffer.from(page) });
}

/** Removes the checksum, which is only valid for the engine's own body. */
function replaceBody({ status, headers }: RawAnswer, body: string): RawAnswer {
  return { status, headers: forwardable(headers, ['x-amz-crc32']), body: Buffer.from(body) };
}
