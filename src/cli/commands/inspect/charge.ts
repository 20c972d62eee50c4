import { ValidationError } from '../../../core/errors.js';
import { formatCount } from '../../../visualize/format.js';
import { parseAmounts } from '../../arguments/parse.js';
import { addExamples, appendValue, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';

/** `--json` of `charge` and `credit` */
export interface ChargeShape {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Readonly<Record<string, number>>;
  /** null: a repeated command counts again. */
  readonly id: string | null;
  /** What is available afterwards of every limit, at the level that has the fewest; null: unlimited. */
  readonly available: Readonly<Record<string, number | null>>;
}

interface ChargeOptions {
  readonly consume?: readonly string[];
  readonly id?: string;
}

export const define: Definition = (command, context) => {
  const kind = command.name() === 'credit' ? 'credit' : 'charge';
  addExamples(command, [`${kind} user-1 gpt-4 -c tpm=500`, `${kind} user-1 gpt-4 -c tpm=500 --id invoice-17`])
    .option('-c, --consume <limit=amount>', `the amount to ${kind} of a limit; can be repeated`, appendValue)
    .option('--id <id>', 'count once within 24 hours, however often the command is repeated')
    .action(onStore(context, chargeAs(kind)));
};

function chargeAs(kind: 'charge' | 'credit'): StoreAction<ChargeOptions> {
  return async ({ limiter }, [entityId = '', resource = ''], { consume, id }): Promise<Result<ChargeShape>> => {
    const amounts = parseAmounts(consume) as Readonly<Record<string, number>>;
    if (Object.keys(amounts).length === 0) {
      throw new ValidationError('-c', 'an amount of at least one limit', consume ?? []);
    }
    await limiter[kind]({ entityId, resource, amounts, ...(id === undefined ? {} : { id }) });
    const left = Object.entries(await limiter.available({ entityId, resource }));
    // JSON has no Infinity.
    const available = left.map(([name, tokens]) => [name, Number.isFinite(tokens) ? tokens : null] as const);
    const data = { entityId, resource, amounts, id: id ?? null, available: Object.fromEntries(available) };
    return {
      data,
      text: (style) => `${style.green(kind === 'charge' ? 'charged' : 'credited')}: ${render(data)}`,
    };
  };
}

function render({ entityId, resource, amounts, available }: ChargeShape): string {
  const list = (of: ChargeShape['available']): string =>
    Object.entries(of)
      .map(([name, tokens]) => `${name} ${tokens === null ? 'unlimited' : formatCount(tokens)}`)
      .join(', ');
  return `${entityId} on ${resource}: ${list(amounts)}; available now: ${list(available)}`;
}
