import pc from 'picocolors';

/** Colours and weights, each of which leaves text as it is where colours are off; and the width of the screen. */
export type Style = ReturnType<typeof pc.createColors> & {
  /** In columns; undefined: a file or a program reads it, and a line may be as long as it is. */
  readonly width?: number;
};

/** What a command reads and writes of the process that it runs in. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Somebody is there to answer a question. */
  readonly canAsk: boolean;
  /** Somebody watches standard error. */
  readonly isWatched: boolean;
  readonly style: Style;
  out(text: string): void;
  err(text: string): void;
  /** Keeps a line for people until the command has ended: `notes`. */
  note(text: string): void;
  readonly notes: readonly string[];
  /** What the command ends with, unless it fails. */
  exitCode: number;
}

export function createTerminal({ env, stdin, stdout, stderr }: NodeJS.Process): Terminal {
  // Not picocolors' own guess, which it makes of `undefined`, too: it colours the logs of CI, and pipes on Windows.
  const coloured = isTerminal(stdout) && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  const notes: string[] = [];
  return {
    env,
    stdin,
    canAsk: isTerminal(stdin) && isTerminal(stderr),
    isWatched: isTerminal(stderr),
    style: {
      ...pc.createColors(coloured),
      ...(isTerminal(stdout) && stdout.columns > 0 ? { width: stdout.columns } : {}),
    },
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    note: (text) => void notes.push(text),
    notes,
    exitCode: 0,
  };
}

/** Of a pipe, Node says nothing at all. */
function isTerminal({ isTTY }: { readonly isTTY?: boolean }): boolean {
  return isTTY === true;
}
