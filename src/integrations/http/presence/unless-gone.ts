/** null: the client has disconnected while its request waited. That is no error of the app. */
export async function unlessGone<T>(signal: AbortSignal | undefined, waiting: Promise<T>): Promise<T | null> {
  try {
    return await waiting;
  } catch (error) {
    if (signal?.aborted === true && error === signal.reason) return null;
    throw error;
  }
}
