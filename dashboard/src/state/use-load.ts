import { useCallback, useEffect, useState } from 'preact/hooks';
import { messageOf } from '../api/http.js';

/** Data that is read from the server: not yet, in vain, or with the time at which it was read. */
export interface Load<T> {
  readonly data: T | null;
  readonly error: string | null;
  readonly reload: () => void;
}

interface LoadOptions {
  /** Reads again so often while the page is visible. 0: only by `reload`. */
  readonly everyMs?: number;
  /** Reads again when it changes. What was read before stays on the page meanwhile. */
  readonly version?: string | number;
}

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
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      if (document.visibilityState === 'visible' || everyMs === 0) {
        try {
          const data = await load(ended.signal);
          if (!ended.signal.aborted) setState({ key, data, error: null });
        } catch (error) {
          if (ended.signal.aborted) return;
          // What was read before stays on the page, with the error beside it.
          setState((old) => ({ key, data: old?.key === key ? old.data : null, error: messageOf(error) }));
        }
      }
      if (everyMs > 0 && !ended.signal.aborted) timer = setTimeout(() => void read(), everyMs);
    };
    void read();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [key, turn, everyMs, version]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  const isCurrent = state !== null && state.key === key;
  return { data: isCurrent ? state.data : null, error: isCurrent ? state.error : null, reload };
}
