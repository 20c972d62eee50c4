import { Option } from 'commander';
import { ON_UNAVAILABLE, type OnUnavailable } from '../../../core/config/config.js';
import { HeadgateError } from '../../../core/errors.js';
import { drawFields } from '../../../visualize/table.js';
import {
  addExamples,
  addVerb,
  appendValue,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { showLimits } from '../../limits/describe-limits.js';
import { parseLimits } from '../../arguments/parse.js';
import type { Result } from '../../run/result.js';
import type { Session } from '../../run/session.js';
import { checkReplace, REPLACE_OPTION, setLimits } from '../../limits/set-limits.js';
import type { Style } from '../../terminal/terminal.js';
import type { DeletedShape, LimitText } from '../../run/common-shapes.js';

/** `--json` of `system show`, `system set` */
export interface SystemShape {
  readonly limits: readonly LimitText[];
  readonly onUnavailable: 'block' | 'allow' | 'local' | null;
}

export const define: Definition = (system, context) => {
  addExamples(system, ['system set -l rpm:100/min']);
  addVerb(system, {
    usage: 'show',
    summary: 'Show the limits of the system',
    examples: ['system show'],
  }).action(onStore(context, showSystem));
  addVerb(system, {
    usage: 'set',
    summary: 'Set limits of the system, or the policy for outages of the store; what is not named stays',
    examples: ['system set -l rpm:100/min -l tpm:10000/min:50000', 'system set --on-unavailable local'],
  })
    .option('-l, --limits <limit>', 'a limit such as rpm:60/min; can be repeated', appendValue)
    .option(...REPLACE_OPTION)
    .addOption(
      new Option('--on-unavailable <policy>', 'what an acquire does while the store does not answer').choices(
        ON_UNAVAILABLE,
      ),
    )
    .action(onStore(context, setSystem));
  addVerb(system, {
    usage: 'delete',
    summary: 'Delete the limits of the system, and its policy for outages',
    examples: ['system delete --yes'],
  }).action(onStore(context, deleteSystem));
};

const showSystem: StoreAction = async (session) => {
  const data = await readSystem(session);
  return { data, text: (style) => render(data, style) };
};

interface SetOptions {
  readonly limits?: readonly string[];
  readonly replace?: boolean;
  readonly onUnavailable?: OnUnavailable;
}

const setSystem: StoreAction<SetOptions> = async (session, _, { limits: texts, replace, onUnavailable }) => {
  const limits = parseLimits(texts);
  checkReplace(limits, replace);
  if (limits === undefined && onUnavailable === undefined) {
    throw new HeadgateError('input.invalid', 'Nothing to set: name a limit with -l, or --on-unavailable');
  }
  const policy = onUnavailable === undefined ? {} : { onUnavailable };
  if (limits === undefined) await session.limiter.config.setSystem(policy);
  else await setLimits(session, 'system', { limits, replace: replace === true, ...policy });
  const data = await readSystem(session);
  return { data, text: (style) => `${style.green('set')}\n${render(data, style)}` };
};

const deleteSystem: StoreAction = async (session): Promise<Result<DeletedShape>> => {
  if ((await session.limiter.config.get('system')) === null) {
    return { data: { deleted: false }, text: () => 'The system has no limits.' };
  }
  await session.confirm(`deletes the limits and the outage policy of the system in namespace ${session.namespace}`);
  await session.limiter.config.delete('system');
  return { data: { deleted: true }, text: (style) => `${style.green('deleted')}: the limits of the system` };
};

async function readSystem({ limiter }: Session): Promise<SystemShape> {
  const config = await limiter.config.get('system');
  return { limits: (config?.limits ?? []).map(String), onUnavailable: config?.onUnavailable ?? null };
}

function render({ limits, onUnavailable }: SystemShape, style: Style): string {
  return drawFields([
    ['limits', showLimits(limits, style, 'none')],
    ['while the store is out', onUnavailable ?? { value: 'block (not set)', paint: style.dim }],
  ]);
}
