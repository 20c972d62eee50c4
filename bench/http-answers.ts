const HEAD_END = Buffer.from('\r\n\r\n');
const LENGTH = /\r\ncontent-length: (\d+)(?:\r|$)/i;
const STATUS_AT = 'HTTP/1.1 '.length;
const NOTHING = Buffer.alloc(0);

/** Splits the bytes of one connection into answers, each of which states the length of its body. */
export class AnswerReader {
  readonly #onAnswer: (status: number, body: Buffer) => void;
  #rest: Buffer = NOTHING;

  constructor(onAnswer: (status: number, body: Buffer) => void) {
    this.#onAnswer = onAnswer;
  }

  /** Calls `onAnswer` for every answer that is complete with these bytes. */
  read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (;;) {
      const headEnd = bytes.indexOf(HEAD_END, at);
      if (headEnd === -1) break;
      const head = bytes.toString('latin1', at, headEnd);
      const length = LENGTH.exec(head)?.[1];
      if (length === undefined) throw new Error(`Expected an answer with a content-length, got ${head}`);
      const bodyAt = headEnd + HEAD_END.length;
      const end = bodyAt + Number(length);
      if (end > bytes.length) break;
      this.#onAnswer(Number(head.slice(STATUS_AT, STATUS_AT + 3)), bytes.subarray(bodyAt, end));
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }
}
