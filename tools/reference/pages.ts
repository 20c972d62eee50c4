import { buildEnvironmentPage } from './environment-page.js';
import { buildErrorsPage } from './errors-page.js';
import { buildHttpPage } from './http-page.js';
import type { Page } from './page.js';

/** The pages of `docs/reference/` that need no TypeDoc. `tests/docs/reference.test.ts` compares them with the files. */
export function buildPages(): readonly Page[] {
  return [buildErrorsPage(), buildEnvironmentPage(), buildHttpPage()];
}
