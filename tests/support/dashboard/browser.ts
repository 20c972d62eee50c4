import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const USUAL = ['/usr/bin/chromium', '/usr/bin/chromium-browser'];

export interface FoundChromium {
  readonly executable: string | null;
  /** Follows the title of tests that are skipped; empty if there is a browser. */
  readonly note: string;
}

/** `CHROMIUM` names the browser. If it is set, no other one is used: a wrong path must not test another browser unnoticed. */
export function findChromium(named: string | undefined, exists: (path: string) => boolean): FoundChromium {
  const isNamed = named !== undefined && named !== '';
  const executable = (isNamed ? [named] : USUAL).find(exists) ?? null;
  if (executable !== null) return { executable, note: '' };
  const why = isNamed ? `CHROMIUM names ${named}, which does not exist` : `set CHROMIUM or install it at ${USUAL[0]}`;
  return { executable, note: ` (skipped: no Chromium; ${why})` };
}

const FOUND = findChromium(process.env['CHROMIUM'], existsSync);

/** Whether tests can drive a browser, and the note for their title if they cannot. */
export const CHROMIUM = { missing: FOUND.executable === null, note: FOUND.note } as const;

/** Starts Chromium with an empty profile. It sends no request of its own to other hosts. */
export async function launchBrowser(extra: readonly string[] = []): Promise<Browser> {
  if (FOUND.executable === null) throw new Error(`There is no browser${FOUND.note}`);
  return chromium.launch({
    executablePath: FOUND.executable,
    args: [
      '--no-sandbox',
      '--headless',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...extra,
    ],
  });
}
