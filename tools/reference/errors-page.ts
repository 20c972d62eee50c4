import { ERRORS, errorTraits } from '../../src/core/error-codes.js';
import { ADVICE, INFRASTRUCTURE } from './error-advice.js';
import { type Page, pageOf, table } from './page.js';

/** `errors.md`: every code with its HTTP status, its exit code, its meaning, and what to do. */
export function buildErrorsPage(): Page {
  const codes = Object.entries(ERRORS) as [keyof typeof ERRORS, (typeof ERRORS)[keyof typeof ERRORS]][];
  const rows = codes.map(([code, { http, exit, retryable }]) => {
    const { thrown, meaning, advice } = ADVICE[code];
    const shown = thrown === null ? 'only over HTTP' : `[\`${thrown}\`](error-classes.md#${thrown.toLowerCase()})`;
    return [`\`${code}\``, String(http), String(exit), retryable ? 'yes' : 'no', meaning, advice, shown];
  });
  const { http, exit } = errorTraits('infrastructure.any');
  const infrastructure = Object.entries(INFRASTRUCTURE).map(([code, meaning]) => [
    `\`infrastructure.${code}\``,
    meaning,
  ]);
  return pageOf('errors.md', [
    '# Errors',
    'Every error has a `code`, which is stable; messages may change. `isHeadgateError(error, code)` tells them apart, also where two copies of the package are loaded. A server answers with the HTTP status and a problem body (RFC 9457) that has the code; the command line ends with the exit code. "Retry": the same call can succeed later.',
    table(['code', 'HTTP', 'exit', 'retry', 'meaning', 'what to do', 'class'], rows),
    'The guide of the command line has [all exit codes](../guide/cli.md#exit-codes).',
    '## What is around the limiter',
    `[\`InfrastructureError\`](error-classes.md#infrastructureerror): HTTP ${http}, exit ${exit}. \`error.retryable\` says whether a retry can help.`,
    table(['code', 'meaning'], infrastructure),
  ]);
}
