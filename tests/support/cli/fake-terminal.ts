import pc from 'picocolors';
import type { Terminal } from '../../../src/cli/terminal/terminal.js';

export interface FakeTerminal extends Terminal {
  readonly outText: () => string;
  readonly errText: () => string;
}

/** A terminal that records its output. It is not interactive unless `watched`. */
export function fakeTerminal(
  settings: { readonly watched?: boolean; readonly env?: NodeJS.ProcessEnv; readonly input?: string } = {},
): FakeTerminal {
  let out = '';
  let err = '';
  const notes: string[] = [];
  return {
    env: settings.env ?? {},
    stdin: inputOf(settings.input ?? ''),
    canAsk: false,
    isWatched: settings.watched === true,
    style: pc.createColors(false),
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    note: (text) => void notes.push(text),
    notes,
    exitCode: 0,
    outText: () => out,
    errText: () => err,
  };
}

async function* inputOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
