import type { Terminal } from './terminal.js';

const QUIET_MS = 1_000;
const REDRAW_MS = 100;
const CLEAR_LINE = '\r\u001B[K';

export interface Progress {
  show(text: string, afterMs?: number): void;
  clear(): void;
}

/** One line on standard error that is redrawn in place: only at a terminal, and not in the first second. */
export function createProgress(terminal: Terminal, now: () => number = () => performance.now()): Progress {
  const startMs = now();
  let drawnMs: number | null = null;
  return {
    show(text, afterMs = QUIET_MS) {
      const nowMs = now();
      if (!terminal.isWatched || nowMs - startMs < afterMs) return;
      if (drawnMs !== null && nowMs - drawnMs < REDRAW_MS) return;
      drawnMs = nowMs;
      terminal.err(`${CLEAR_LINE}${text}`);
    },
    clear() {
      if (drawnMs !== null) terminal.err(CLEAR_LINE);
      drawnMs = null;
    },
  };
}
