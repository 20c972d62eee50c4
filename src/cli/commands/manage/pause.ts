import { HeadgateError, ValidationError } from '../../../core/errors.js';
import type { PauseRequest } from '../../../limiter/api/pause-api.js';
import { parseDuration, parseInstant } from '../../arguments/parse.js';
import { addExamples, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import type { PausedByShape } from '../../run/common-shapes.js';
import type { Result } from '../../run/result.js';
import { describePause, pausedByShape } from './pause-view.js';

export const define: Definition = (command, context) => {
  addExamples(command, [
    `pause user-1 --forever --reason 'the key was leaked'`,
    `pause user-1 --resource gpt-4 --for 20s --reason 'the vendor asked for it'`,
    `pause proj-1 --until 2027-01-31T10:00 --reason 'unpaid'`,
  ])
    .option('--resource <resource>', 'only on this resource; without it, on every resource')
    .option('--for <duration>', 'how long, such as 20s or 2hour')
    .option('--until <time>', 'until this time in UTC, such as 2027-01-31T10:00')
    .option('--forever', 'until `headgate resume`')
    .requiredOption('--reason <text>', 'what callers get as the reason, and what the audit record keeps')
    .action(onStore(context, pauseEntity));
};

interface PauseOptions {
  readonly resource?: string;
  readonly for?: string;
  readonly until?: string;
  readonly forever?: boolean;
  readonly reason: string;
}

const pauseEntity: StoreAction<PauseOptions> = async (
  { limiter },
  [entityId = ''],
  options,
): Promise<Result<PausedByShape>> => {
  const { resource, reason } = options;
  const target = resource === undefined ? { entityId } : { entityId, resource };
  const data = pausedByShape(await limiter.pause({ ...target, ...endOf(options), reason }));
  const what = resource === undefined ? entityId : `${entityId} on ${resource}`;
  return { data, text: (style) => `${style.green('paused')}: ${what}, ${describePause(data)}` };
};

function endOf(options: PauseOptions): Pick<PauseRequest, 'untilMs' | 'forMs'> {
  const { for: duration, until, forever } = options;
  if ([duration, until, forever].filter((given) => given !== undefined).length !== 1) {
    throw new HeadgateError('input.invalid', 'Give one of --for, --until and --forever');
  }
  if (duration !== undefined) return { forMs: parseDuration('--for', duration) };
  if (until === undefined) return { forMs: 'forever' };
  const now = new Date();
  const end = parseInstant('--until', until, now);
  if (end <= now) throw new ValidationError('--until', 'a UTC time in the future; --for takes a duration', until);
  return { untilMs: end.getTime() };
}
