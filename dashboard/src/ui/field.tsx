import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
  readonly placeholder?: string;
  /** `secret`: the value is not shown. `instant`: a date and a time without a zone. `long`: text of many words. */
  readonly kind?: 'text' | 'secret' | 'instant' | 'long';
  readonly required?: boolean;
  /** Known values, offered while typing. */
  readonly choices?: readonly string[];
}

const TYPES = { secret: { type: 'password' }, instant: { type: 'datetime-local' } } as const;

/** A labelled input of one line. */
export function Field({
  label,
  value,
  onInput,
  hint,
  choices,
  kind = 'text',
  placeholder,
  required = false,
}: FieldProps) {
  const id = useId();
  return (
    <div class={`field ${kind}`}>
      <label for={id}>{label}</label>
      <input
        id={id}
        {...(kind === 'secret' || kind === 'instant' ? TYPES[kind] : { list: choices && `${id}-choices` })}
        value={value}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        required={required}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {hint === undefined ? null : (
        <small id={`${id}-hint`} class="hint">
          {hint}
        </small>
      )}
      {choices === undefined ? null : (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

export function Choice({ label, value, options, onChange }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface AreaProps {
  readonly label: string;
  readonly value: string;
  readonly rows: number;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
  readonly placeholder?: string;
}

/** A labelled input of several lines. */
export function Area({ label, value, rows, onInput, hint, placeholder }: AreaProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        spellcheck={false}
        value={value}
        placeholder={placeholder}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {hint === undefined ? null : (
        <small id={`${id}-hint`} class="hint">
          {hint}
        </small>
      )}
    </div>
  );
}

/** A form that does what its button says, without leaving the page. */
export function Form({
  label,
  onSubmit,
  children,
}: {
  readonly label: string;
  readonly onSubmit: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <form
      class="form"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}
