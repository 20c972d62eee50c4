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

interface LabelledProps {
  readonly id: string;
  readonly label: string;
  readonly kind?: string;
  readonly hint?: string;
  readonly children: ComponentChildren;
}

function Labelled({ id, label, kind = '', hint = '', children }: LabelledProps) {
  return (
    <div class={`field ${kind}`}>
      <label for={id}>{label}</label>
      {children}
      {hint === '' ? null : (
        <small id={`${id}-hint`} class="hint">
          {hint}
        </small>
      )}
    </div>
  );
}

const hintOf = (id: string, hint: string): string | undefined => (hint === '' ? undefined : `${id}-hint`);

/** A labelled input of one line. */
export function Field({
  label,
  value,
  onInput,
  hint = '',
  choices = [],
  kind = 'text',
  placeholder,
  required = false,
}: FieldProps) {
  const id = useId();
  return (
    <Labelled id={id} label={label} kind={kind} hint={hint}>
      <input
        id={id}
        {...(kind === 'secret' || kind === 'instant'
          ? TYPES[kind]
          : { list: choices.length === 0 ? undefined : `${id}-choices` })}
        value={value}
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        required={required}
        aria-describedby={hintOf(id, hint)}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {choices.length === 0 ? null : (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </Labelled>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onInput: (value: string) => void;
}

export function Choice({ label, value, options, onInput }: ChoiceProps) {
  const id = useId();
  return (
    <Labelled id={id} label={label}>
      <select id={id} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

/** For the field that a press of a button shows. */
export const focusOn = (node: HTMLElement | null): void => node?.focus();

interface AreaProps {
  readonly label: string;
  readonly value: string;
  readonly rows: number;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly isFocused?: boolean;
}

/** A labelled input of several lines. */
export function Area({ label, value, rows, onInput, hint = '', placeholder, isFocused = false }: AreaProps) {
  const id = useId();
  return (
    <Labelled id={id} label={label} hint={hint}>
      <textarea
        ref={isFocused ? focusOn : null}
        id={id}
        rows={rows}
        spellcheck={false}
        value={value}
        placeholder={placeholder}
        aria-describedby={hintOf(id, hint)}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </Labelled>
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
