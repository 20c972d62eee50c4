import { parseJson } from './read-body.js';

/** The content of a limits file that was sent as text. */
export interface ParsedLimitsFile {
  /** The limiter checks it when it plans or applies the file. */
  readonly data: unknown;
  /** Adds the place in the text to an error about its content. Returns other errors unchanged. */
  explain(error: unknown): unknown;
}

/** Reads a limits file. Throws an error of the library that says what is wrong with the text. */
export type LimitsFileParser = (text: string) => Promise<ParsedLimitsFile>;

/** The parser of a server that gets no other one: the YAML parser is part of the command line only. */
export const parseJsonFile: LimitsFileParser = async (text) => ({
  data: parseJson('text', text, 'JSON (this server has no parser for YAML)'),
  explain: (error) => error,
});
