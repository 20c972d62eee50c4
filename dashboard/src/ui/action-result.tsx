import { Failure } from './states.js';
import type { Action } from './use-action.js';

/** How the last change ended, announced to screen readers. */
export function ActionResult({ action: { done, error } }: { readonly action: Action }) {
  if (error !== null) return <Failure message={error} />;
  return (
    <p class={done === null ? 'result empty-result' : 'result'} role="status">
      {done}
    </p>
  );
}
