import { InfrastructureError } from '../../../core/errors.js';
import type { ResourceFailure } from './stack-events.js';

/** An operation on a stack failed. `failures` has CloudFormation's reason for each resource, the root cause first. */
class StackFailed extends InfrastructureError {
  readonly stackName: string;
  readonly status: string;
  readonly failures: readonly ResourceFailure[];

  constructor(message: string, details: StackFailedDetails) {
    super('infrastructure.stack-failed', message);
    this.stackName = details.stackName;
    this.status = details.status;
    this.failures = details.failures;
  }
}

interface StackFailedDetails {
  readonly stackName: string;
  readonly status: string;
  readonly failures: readonly ResourceFailure[];
}

/**
 * `what` states the failure: "Stack headgate-pre is UPDATE_ROLLBACK_COMPLETE". The message includes the first `shown`
 * failures.
 */
export function stackFailed(
  what: string,
  details: StackFailedDetails,
  { hint = null, shown = 1 }: { readonly hint?: string | null; readonly shown?: number } = {},
): StackFailed {
  const causes = details.failures.slice(0, shown).map((failure) => trimEnd(describeFailure(failure)));
  const why = causes.length === 0 ? 'CloudFormation gives no reason' : causes.join('; ');
  return new StackFailed(`${what}: ${why}${hint === null ? '' : `. ${hint}`}`, details);
}

function describeFailure({ logicalId, type, reason }: ResourceFailure): string {
  return logicalId === null ? reason : `${logicalId} (${type ?? 'unknown'}): ${reason}`;
}

function trimEnd(text: string): string {
  return text.trim().replace(/\.$/, '');
}
