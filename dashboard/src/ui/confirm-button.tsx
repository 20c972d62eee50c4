import { useState } from 'preact/hooks';

interface ConfirmButtonProps {
  readonly label: string;
  readonly question: string;
  /** What it concerns, for screen readers: many rows have the same button. */
  readonly about: string;
  readonly onConfirm: () => void;
}

/** A button that acts when it is pressed twice. Leaving it takes the first press back. */
export function ConfirmButton({ label, question, about, onConfirm }: ConfirmButtonProps) {
  const [isAsked, setIsAsked] = useState(false);
  return (
    <button
      type="button"
      class={isAsked ? 'danger' : ''}
      aria-label={`${isAsked ? question : label}: ${about}`}
      onBlur={() => setIsAsked(false)}
      onClick={() => {
        if (isAsked) onConfirm();
        setIsAsked(!isAsked);
      }}
    >
      {isAsked ? question : label}
    </button>
  );
}
