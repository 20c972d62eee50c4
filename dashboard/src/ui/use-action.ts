import { useState } from 'preact/hooks';
import { messageOf } from '../api/http.js';

/** A change that the reader starts: whether it runs, and how the last one ended. */
export interface Action {
  readonly isRunning: boolean;
  readonly done: string | null;
  readonly error: string | null;
  /** `work` returns the sentence that says what was done. */
  readonly run: (work: () => Promise<string>) => void;
}

export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, 'run'>>({ isRunning: false, done: null, error: null });
  const run = (work: () => Promise<string>): void => {
    if (state.isRunning) return;
    setState({ isRunning: true, done: null, error: null });
    work().then(
      (done) => setState({ isRunning: false, done, error: null }),
      (error: unknown) => setState({ isRunning: false, done: null, error: messageOf(error) }),
    );
  };
  return { ...state, run };
}
