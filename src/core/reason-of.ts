/** The message of a thrown value, which in JavaScript need not be an error. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
