import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerReader, type HttpAnswer } from './answer-reader.js';

const OK = 'HTTP/1.1 200 OK\r\n';

/** The answer that a reader finds in the text, cut into pieces at these positions. */
function readIn(text: string, cuts: readonly number[] = []): HttpAnswer | null {
  const reader = new AnswerReader();
  const bytes = Buffer.from(text, 'latin1');
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  let answer: HttpAnswer | null = null;
  for (let piece = 1; piece < at.length; piece++) answer ??= reader.push(bytes.subarray(at[piece - 1], at[piece]));
  return answer;
}

const bodyOf = (answer: HttpAnswer | null): string | undefined => answer?.body.toString('latin1');
const cuts = fc.array(fc.nat(), { maxLength: 8 });
const body = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCodePoint(code)) });

describe('the body', () => {
  test('a body with a length is read whole, however the bytes arrive', () => {
    fc.assert(
      fc.property(body, cuts, (text, at) => {
        const answer = readIn(`${OK}Content-Length: ${text.length}\r\n\r\n${text}`, at);
        expect([bodyOf(answer), answer?.keepsOpen]).toEqual([text, true]);
      }),
    );
  });

  test('a body in chunks is read whole, however the bytes arrive', () => {
    fc.assert(
      fc.property(fc.array(body), cuts, (parts, at) => {
        const chunks = parts
          .filter((part) => part !== '')
          .map((part) => `${part.length.toString(16)};note=1\r\n${part}\r\n`);
        const answer = readIn(`${OK}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\nx-end: 1\r\n\r\n`, at);
        expect([bodyOf(answer), answer?.keepsOpen]).toEqual([parts.join(''), true]);
      }),
    );
  });

  test('a body without a length ends with the connection, which is not used again', () => {
    const reader = new AnswerReader();
    expect(reader.push(Buffer.from(`${OK}\r\n{"a":`))).toBeNull();
    expect(reader.push(Buffer.from('1}'))).toBeNull();
    expect(reader.end()).toMatchObject({ body: Buffer.from('{"a":1}'), keepsOpen: false });
  });

  test.each(['Content-Length: 9', 'Transfer-Encoding: chunked'])(
    'an answer with %s that ends too early is not complete at any length',
    (framing) => {
      const whole = `${OK}${framing}\r\n\r\n${framing.startsWith('C') ? '{"a":"b"}' : '9\r\n{"a":"b"}\r\n0\r\n\r\n'}`;
      for (let length = 0; length < whole.length; length++) {
        const reader = new AnswerReader();
        expect(reader.push(Buffer.from(whole.slice(0, length)))).toBeNull();
        expect(reader.end()).toBeNull();
      }
      expect(readIn(whole)?.body.toString()).toBe('{"a":"b"}');
    },
  );

  test('a body of 31 MB is read, and one of more than 32 MB is refused as soon as that is known', () => {
    const pushAll = (head: string, piece: Buffer, count: number): HttpAnswer | null => {
      const reader = new AnswerReader();
      let answer = reader.push(Buffer.from(`${OK}${head}\r\n\r\n`));
      for (let sent = 0; sent < count && answer === null; sent++) answer = reader.push(piece);
      return answer;
    };
    const mb = Buffer.alloc(2 ** 20, 'a');
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), mb, Buffer.from('\r\n')]);
    expect(pushAll(`Content-Length: ${31 * 2 ** 20}`, mb, 31)?.body).toHaveLength(31 * 2 ** 20);
    expect(() => pushAll(`Content-Length: ${32 * 2 ** 20 + 1}`, mb, 0)).toThrow('its body is too long');
    expect(() => pushAll('Transfer-Encoding: chunked', chunk, 33)).toThrow('its body is too long');
    expect(() => pushAll('X-Length: none', mb, 33)).toThrow('its body is too long');
    // Each piece takes memory, however short it is.
    const bytes = Buffer.from('1\r\na\r\n'.repeat(1_000));
    expect(() => pushAll('Transfer-Encoding: chunked', bytes, 300)).toThrow('its body is too long');
  });

  test('an answer of status 204 has no body', () => {
    expect(readIn('HTTP/1.1 204 No Content\r\n\r\n')).toMatchObject({ status: 204, body: Buffer.alloc(0) });
  });
});

test('an answer of a node server is read as node reads it', async () => {
  const server = createServer((_, answer) => {
    answer.setHeader('X-Twice', ['one', 'two']);
    for (const part of ['{"a":', '1}']) answer.write(part);
    answer.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const asked = request({ port, host: '127.0.0.1', agent: false, headers: { connection: 'keep-alive' } }).end();
  const [theirs] = (await once(asked, 'response')) as [IncomingMessage];
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n');
  const reader = new AnswerReader();
  const ours = await new Promise<HttpAnswer>((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      const answer = reader.push(bytes);
      if (answer !== null) resolve(answer);
    });
  });
  expect(ours).toMatchObject({ status: theirs.statusCode, body: Buffer.from('{"a":1}'), keepsOpen: true });
  expect({ ...ours.headers, date: '' }).toEqual({ ...theirs.headers, date: '' });
  for (const one of [socket, asked]) one.destroy();
  server.close().closeAllConnections();
});

describe('the head', () => {
  test('names of headers are in lower case, values are trimmed, and values of one name are joined', () => {
    expect(readIn(`${OK}Content-Length:0\r\nX-A: \t one two \r\nx-a:three\r\n\r\n`)?.headers).toEqual({
      'content-length': '0',
      'x-a': 'one two, three',
    });
  });

  test('an announcement before the answer is skipped', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${OK}Content-Length: 2\r\n\r\n{}`;
    expect(bodyOf(readIn(text))).toBe('{}');
  });

  test.each([
    ['HTTP/1.1 200 OK\r\nConnection: close\r\n', 'the server closes the connection'],
    ['HTTP/1.1 200 OK\r\nConnection: x, Close\r\n', 'one of its options closes the connection'],
    ['HTTP/1.0 200 OK\r\n', 'the server speaks HTTP/1.0'],
  ])('%j does not keep the connection open: %s', (head) => {
    expect(readIn(`${head}Content-Length: 2\r\n\r\n{}`)).toMatchObject({ keepsOpen: false });
  });

  test('a connection on which more bytes arrive than the answer has is not used again', () => {
    const answer = readIn(`${OK}Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n`);
    expect([bodyOf(answer), answer?.keepsOpen]).toEqual(['{}', false]);
  });
});

test.each([
  ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['a change of the protocol', 'HTTP/1.1 101 Switching\r\n\r\n'],
  ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a folded header', `${OK}X-A: 1\r\n Content-Length: 2\r\n\r\n{}`],
  ['a space before the colon', `${OK}Content-Length : 2\r\n\r\n{}`],
  ['a bare line feed', `${OK}X-A: 1\nContent-Length: 2\r\n\r\n{}`],
  ['two lengths', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
  ['a negative length', `${OK}Content-Length: -2\r\n\r\n{}`],
  ['a hexadecimal length', `${OK}Content-Length: 0x2\r\n\r\n{}`],
  ['a length beside chunks', `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ['compressed chunks', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ['a chunk without a size', `${OK}Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n`],
  ['a chunk that is longer than its size', `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n`],
  ['headers without end', `${OK}X-A: ${'a'.repeat(20_000)}`],
  ['a line of a chunk without end', `${OK}Transfer-Encoding: chunked\r\n\r\n${'0'.repeat(20_000)}`],
])('an answer with %s is refused', (_, text) => {
  expect(() => readIn(text)).toThrow('the answer is not HTTP/1.1');
});
