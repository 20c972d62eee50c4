import type { Clock } from '../../../clock.js';

const MAX_PEEK = 65_536;
/** A refusal is a short text. A body that takes longer must not delay the pause of the key. */
const MAX_PEEK_MS = 1_000;

/** Reads the beginning of a body, for a second at most, and gives the whole of it. */
export async function peekBody(
  body: ReadableStream<Uint8Array>,
  clock: Required<Clock>,
): Promise<{ readonly text: string; readonly whole: ReadableStream<Uint8Array> }> {
  const reader = body.getReader();
  const read: Uint8Array[] = [];
  /** The read that the deadline has left open. */
  let open: ReturnType<typeof reader.read> | null = null;
  const isOver = new AbortController();
  const deadline = clock.sleep(MAX_PEEK_MS, isOver.signal, { background: true }).catch(() => {});
  try {
    for (let length = 0; length < MAX_PEEK;) {
      open = reader.read();
      const result = await Promise.race([open, deadline]);
      if (result === undefined) break;
      open = null;
      if (result.value === undefined) break;
      read.push(result.value);
      length += result.value.length;
    }
  } catch {
    // The caller gets the same error when it reads the body.
    open = null;
  } finally {
    isOver.abort();
  }
  const text = new TextDecoder().decode(Buffer.concat(read));
  const whole = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const chunk = read.shift();
      const { done, value } = chunk === undefined ? await (open ?? reader.read()) : { done: false, value: chunk };
      if (chunk === undefined) open = null;
      if (value !== undefined) controller.enqueue(value);
      if (done) controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { text, whole };
}
