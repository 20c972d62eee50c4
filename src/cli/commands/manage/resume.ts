import { addExamples, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';

/** `--json` of `resume` */
export interface ResumedShape {
  /** false: it was not paused. */
  readonly resumed: boolean;
}

export const define: Definition = (command, context) => {
  addExamples(command, ['resume user-1', 'resume user-1 --resource gpt-4'])
    .option('--resource <resource>', 'end the pause of this resource; without it, the pause of every resource')
    .action(onStore(context, resumeEntity));
};

const resumeEntity: StoreAction<{ readonly resource?: string }> = async (
  { limiter },
  [entityId = ''],
  { resource },
): Promise<Result<ResumedShape>> => {
  const resumed = await limiter.resume(resource === undefined ? { entityId } : { entityId, resource });
  const what = resource === undefined ? entityId : `${entityId} on ${resource}`;
  return {
    data: { resumed },
    text: (style) => (resumed ? `${style.green('resumed')}: ${what}` : `${what} was not paused.`),
  };
};
