import { whenDropped } from '../../when-dropped.js';
import type { Admitted } from '../admission/admission.js';

/**
 * The answer, whose lease ends with its body: when it has been read, fails or is cancelled, when the client leaves, or when
 * the answer is collected as garbage, because outer code has sent another one. Servers do not always read or cancel the
 * body of an answer whose client has left: Next.js does neither. Passes every chunk on at once. No function of this scope
 * may refer to the body, or it would not be collected.
 */
export function endWithBody(response: Response, admission: Admitted, signal: AbortSignal): Response {
  const { status } = response;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let hasLeft = false;
  const end = async (by: number | null): Promise<void> => {
    signal.removeEventListener('abort', leave);
    await admission.end(by);
  };
  const leave = (): void => {
    hasLeft = true;
    // At once: what produces the body, such as a model, must not go on while the store does not answer.
    reader.cancel(signal.reason).catch(() => {});
    void end(null);
  };
  // An answer that comes later is passed on whole, because outer code may store it.
  if (signal.aborted) void end(null);
  else signal.addEventListener('abort', leave);

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          // A source that was cancelled looks complete, and outer code may store it as a whole answer.
          if (hasLeft) signal.throwIfAborted();
          if (!done) return controller.enqueue(value);
          await end(status);
          controller.close();
        } catch (error) {
          await end(status);
          controller.error(error);
        }
      },
      async cancel(reason) {
        await Promise.all([reader.cancel(reason), end(status)]);
      },
    },
    // A read ahead of its reader would keep the body alive until its source answers.
    { highWaterMark: 0 },
  );
  whenDropped(body, () => {
    reader.cancel().catch(() => {});
    void end(status);
  });
  return new Response(body, response);
}
