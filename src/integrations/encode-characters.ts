/**
 * The text with each character that `excluded` finds as `%` and two digits for each of its bytes. Accepts half of a
 * surrogate pair, which `encodeURIComponent` does not.
 */
export function encodeCharacters(text: string, excluded: RegExp): string {
  return text.replaceAll(excluded, (character) =>
    Array.from(new TextEncoder().encode(character), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  );
}
