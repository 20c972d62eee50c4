import pc from 'picocolors';

/** Colours and weights, which return the text unchanged if colours are off, and the width of the screen. */
export type Style = ReturnType<typeof pc.createColors> & {
  /** In columns; undefined: the output is a file or a pipe, and lines may have any length. */
  readonly width?: number;
};

/** The parts of the process that a command reads and writes. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Whether the user can answer a question. */
  readonly canAsk: boolean;
  /** Whether standard error is a terminal. */
  readonly isWatched: boolean;
  readonly style: Style;
  out(text: string): void;
  err(text: string): void;
  /** Adds a line to `notes`, which are printed after the result. */
  note(text: string): void;
  readonly notes: readonly string[];
  /** The exit code of the command unless it fails. */
  exitCode: number;
  /** Whether the command goes on if its output cannot be written: a server must not end with the reader of its log. */
  outlivesOutput?: boolean;
}

export function createTerminal({ env, stdin, stdout, stderr }: NodeJS.Process): Terminal {
  // Always given: without a value, picocolors would guess, and colour the logs of CI and pipes on Windows.
  const coloured = isTerminal(stdout) && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  const colours = pc.createColors(coloured);
  const notes: string[] = [];
  return {
    env,
    stdin,
    canAsk: isTerminal(stdin) && isTerminal(stderr),
    isWatched: isTerminal(stderr),
    /** With the width of now: a window changes while a command runs. */
    get style() {
      return isTerminal(stdout) && stdout.columns > 0 ? { ...colours, width: stdout.columns } : colours;
    },
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    note: (text) => void notes.push(text),
    notes,
    exitCode: 0,
  };
}

/** Node leaves `isTTY` undefined for a pipe. */
function isTerminal({ isTTY }: { readonly isTTY?: boolean }): boolean {
  return isTTY === true;
}
