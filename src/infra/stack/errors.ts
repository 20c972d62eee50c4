import { InfrastructureError } from '../../core/errors.js';
import type { ResourceFailure } from './stack-events.js';

/** An operation on a stack failed. `failures` has what CloudFormation says of each resource, the cause first. */
export class StackFailed extends InfrastructureError {
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

/** `what` is what failed: "Stack headgate-pre is UPDATE_ROLLBACK_COMPLETE". */
export function stackFailed(what: string, details: StackFailedDetails, hint: string | null = null): StackFailed {
  const [cause] = details.failures;
  const why = cause === undefined ? 'CloudFormation gives no reason' : describeFailure(cause);
  return new StackFailed(`${what}: ${trimEnd(why)}${hint === null ? '' : `. ${hint}`}`, details);
}

export function describeFailure({ logicalId, type, reason }: ResourceFailure): string {
  return logicalId === null ? reason : `${logicalId} (${type ?? 'unknown'}): ${reason}`;
}

function trimEnd(text: string): string {
  return text.trim().replace(/\.$/, '');
}
