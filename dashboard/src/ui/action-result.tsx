import { useEffect, useRef } from 'preact/hooks';
import { Failure } from './states.js';
import type { Action } from './use-action.js';

interface ActionResultProps {
  readonly action: Action;
  /** The button that started it goes away, and would take the focus with it. */
  readonly takesFocus?: boolean;
}

/** How the last change ended, announced to screen readers. */
export function ActionResult({ action: { done, error }, takesFocus = false }: ActionResultProps) {
  const line = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (takesFocus && done !== null) line.current?.focus();
  }, [done]);
  if (error !== null) return <Failure message={error} />;
  return (
    <p ref={line} class="result" role="status" tabIndex={-1}>
      {done}
    </p>
  );
}
