import { useState } from 'preact/hooks';
import { messageOf } from '../api/http.js';

/** A change that the reader starts: whether it runs, and how the last one ended. */
export interface Action {
  readonly isRunning: boolean;
  readonly done: string | null;
  readonly error: string | null;
  /** `work` returns the sentence that says what was done. */
  readonly run: (work: () => Promise<string>) => void;
  /** Forgets how the last one ended: what it said is not true any more. */
  readonly clear: () => void;
}

const NOTHING = { isRunning: false, done: null, error: null };

export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, 'run' | 'clear'>>(NOTHING);
  const run = (work: () => Promise<string>): void => {
    if (state.isRunning) return;
    setState({ ...NOTHING, isRunning: true });
    work().then(
      (done) => setState({ ...NOTHING, done }),
      (error: unknown) => setState({ ...NOTHING, error: messageOf(error) }),
    );
  };
  return { ...state, run, clear: () => setState(NOTHING) };
}
