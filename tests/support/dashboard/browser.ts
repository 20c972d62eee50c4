import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const CANDIDATES = [process.env['CHROMIUM'], '/usr/bin/chromium', '/usr/bin/chromium-browser'];
const EXECUTABLE = CANDIDATES.find((path) => path !== undefined && path !== '' && existsSync(path));

/** Whether tests can drive a browser, and the note for their title if they cannot. */
export const CHROMIUM = {
  missing: EXECUTABLE === undefined,
  note: EXECUTABLE === undefined ? ' (skipped: no Chromium; set CHROMIUM or install it at /usr/bin/chromium)' : '',
} as const;

/** Starts Chromium with an empty profile. It sends no request of its own to other hosts. */
export async function launchBrowser(extra: readonly string[] = []): Promise<Browser> {
  if (EXECUTABLE === undefined) throw new Error('There is no Chromium');
  return chromium.launch({
    executablePath: EXECUTABLE,
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
