import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export interface WatchedPage {
  readonly page: Page;
  /** Console errors, uncaught errors, answers from 400 on, failed requests, and requests to other hosts. */
  readonly problems: readonly string[];
}

/** Opens a page in a context of its own, and collects everything that a correct page does not do. */
export async function openPage(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ reducedMotion: 'reduce', acceptDownloads: true, ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  /** A page that was opened empty, to prepare it, gets its origin with its first address. */
  const isLocal = (url: string): boolean => /^(?:blob:)?http:\/\/127\.0\.0\.1:\d+\//.test(url) || url === 'about:blank';
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    if (!isLocal(request.url())) problems.push(`another host: ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`);
  });
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? '';
    // The page ends its own requests when the reader leaves, and a download ends the navigation to it.
    if (why !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()} ${why}`);
  });
  await page.goto(address);
  return { page, problems };
}
