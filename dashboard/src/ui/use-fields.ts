import { useState } from 'preact/hooks';

/**
 * The texts of a form by name, and what a field needs to show and edit one of them. Other `initial` texts replace what
 * was typed. `origin` names them.
 */
export function useFields<K extends string>(initial: Readonly<Record<K, string>>) {
  const origin = JSON.stringify(initial);
  const [state, setState] = useState({ origin, typed: initial });
  const typedIn = (of: typeof state) => (of.origin === origin ? of.typed : initial);
  const values = typedIn(state);
  const field = (name: K) => ({
    value: values[name],
    onInput: (value: string) => setState((old) => ({ origin, typed: { ...typedIn(old), [name]: value } })),
  });
  const trimmed = Object.fromEntries(
    Object.entries<string>(values).map(([name, value]) => [name, value.trim()]),
  ) as Readonly<Record<K, string>>;
  return { values: trimmed, field, origin };
}
