import type { Admitted } from '../admission/admission.js';

/** Runs a handler. The lease ends when the client leaves, because the handler may never answer. */
export async function whilePresent<T>(signal: AbortSignal, admission: Admitted, handle: () => Promise<T>): Promise<T> {
  const leave = (): void => void admission.end(null);
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  try {
    return await handle();
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
