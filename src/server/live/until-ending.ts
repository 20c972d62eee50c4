/**
 * Runs `work` with a signal that aborts when the client disconnects or the server ends. Not `AbortSignal.any`, which keeps an
 * entry for every request in the signal of the server as long as the server runs.
 */
export async function untilEnding<T>(
  client: AbortSignal,
  ending: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = new AbortController();
  const sources = [client, ending];
  const abort = (): void => either.abort(sources.find(({ aborted }) => aborted)?.reason);
  for (const source of sources) source.addEventListener('abort', abort);
  if (sources.some(({ aborted }) => aborted)) abort();
  try {
    return await work(either.signal);
  } finally {
    for (const source of sources) source.removeEventListener('abort', abort);
  }
}
