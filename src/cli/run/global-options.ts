import type { Command } from 'commander';

/** Options that every command accepts, before or after its name. */
export interface GlobalOptions {
  readonly store?: string;
  readonly namespace?: string;
  readonly principal?: string;
  readonly json?: boolean;
  readonly yes?: boolean;
}

export function describeGlobalOptions(program: Command): void {
  program
    .option(
      '--store <address>',
      'the store: file:./limits.db, dynamodb://my-table or memory: (HEADGATE_URL, else memory:)',
    )
    .option('--namespace <name>', 'the tenant (HEADGATE_NAMESPACE, else default)')
    .option('--principal <name>', 'who makes the change, for the audit (HEADGATE_PRINCIPAL, else the OS user)')
    .option('--json', 'print data for programs instead of text')
    .option('--yes', 'do not ask before something is deleted or reset');
}
