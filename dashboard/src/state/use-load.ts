import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../api/http.js';

/** Data that is read from the server: not yet, in vain, or with the time at which it was read. */
export interface Load<T> {
  readonly data: T | null;
  readonly error: string | null;
  readonly reload: () => void;
}

interface LoadOptions {
  /** Reads again so often while the page is visible, and when it becomes visible. 0: only by `reload`. */
  readonly everyMs?: number;
  /** Reads again when it changes. What was read before stays on the page meanwhile. */
  readonly version?: string | number;
}

const isVisible = (): boolean => document.visibilityState === 'visible';

/** Reads data now, when `key` changes, and repeatedly. Data of another key is never shown. `key` null: reads nothing. */
export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs = 0, version = 0 }: LoadOptions = {},
): Load<T> {
  const [state, setState] = useState<{
    readonly key: string;
    readonly data: T | null;
    readonly error: string | null;
  } | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (key === null) return undefined;
    const ended = new AbortController();
    const { signal } = ended;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isReading = false;
    const read = async (): Promise<void> => {
      clearTimeout(timer);
      if (isReading) return;
      isReading = true;
      try {
        const data = await load(signal);
        if (!signal.aborted) setState({ key, data, error: null });
      } catch (error) {
        // What was read before stays on the page, with the error beside it.
        if (!signal.aborted)
          setState((old) => ({ key, data: old?.key === key ? old.data : null, error: messageOf(error) }));
      }
      isReading = false;
      if (everyMs > 0 && !signal.aborted) timer = setTimeout(readIfVisible, everyMs);
    };
    const readIfVisible = (): void => {
      if (isVisible()) void read();
    };
    if (everyMs > 0) document.addEventListener('visibilitychange', readIfVisible, { signal });
    // A page that is opened in the background has its data when it is looked at.
    if (isVisible() || state?.key !== key) void read();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [key, turn, everyMs, version]);
  const reload = (): void => setTurn(turn + 1);
  const isCurrent = state !== null && state.key === key;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload };
}
