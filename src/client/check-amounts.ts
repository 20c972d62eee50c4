import { ValidationError } from '../core/errors.js';

/** Refuses amounts that JSON cannot carry: an undefined one would be left out, and the rest would be granted. */
export function checkAmounts(field: string, amounts: object | undefined): void {
  for (const [name, amount] of Object.entries(amounts ?? {})) {
    if (!Number.isFinite(amount)) throw new ValidationError(`${field}.${name}`, 'a whole number', amount);
  }
}
