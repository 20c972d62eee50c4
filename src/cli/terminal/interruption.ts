const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** The part of the process that receives signals. */
type SignalSource = Pick<NodeJS.EventEmitter, 'once' | 'removeListener'>;

/**
 * Runs work that ends in order when the command is interrupted: the first signal aborts `stop` with `reasonOf`, and a
 * second one ends the process, as without this function.
 */
export async function stopOnSignal<T>(
  work: (stop: AbortController) => Promise<T>,
  reasonOf: () => unknown = () => undefined,
  source: SignalSource = process,
): Promise<T> {
  const stop = new AbortController();
  const stopListening = (): void => {
    for (const signal of SIGNALS) source.removeListener(signal, onSignal);
  };
  const onSignal = (): void => {
    stopListening();
    stop.abort(reasonOf());
  };
  for (const signal of SIGNALS) source.once(signal, onSignal);
  try {
    return await work(stop);
  } finally {
    stopListening();
  }
}
