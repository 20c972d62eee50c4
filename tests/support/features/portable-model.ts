import { isHeadgateError } from '../../../src/core/errors.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';

/** What one process does with a portable lease. */
export type Step =
  | { readonly kind: 'settle'; readonly tpd: number }
  | { readonly kind: 'adjust'; readonly tpd: number; readonly id: string }
  | { readonly kind: 'commit'; readonly tpd: number | null }
  | { readonly kind: 'rollback' | 'release' | 'extend' };

export type Outcome = 'done' | 'closed';

/**
 * A portable lease as one process without faults would see it: every step happens at once, at all levels, and a step that
 * is repeated happens once.
 */
export class PortableModel {
  state: 'open' | 'committed' | 'rolled-back' = 'open';
  taken: { rpd: number; tpd: number; slots: number };
  readonly #adjusts = new Set<string>();

  constructor(taken: { readonly rpd: number; readonly tpd: number; readonly slots: number }) {
    this.taken = { ...taken };
  }

  apply(step: Step): Outcome {
    if (step.kind === 'release') return this.#release();
    if (step.kind === 'adjust' && this.#adjusts.has(step.id)) return 'done';
    if (this.state !== 'open') return endsAs(step) === this.state ? 'done' : 'closed';
    switch (step.kind) {
      case 'settle':
        this.taken.tpd = step.tpd;
        break;
      case 'adjust':
        this.taken.tpd = Math.max(0, this.taken.tpd + step.tpd);
        this.#adjusts.add(step.id);
        break;
      case 'commit':
        this.taken.tpd = step.tpd ?? this.taken.tpd;
        this.taken.slots = 0;
        this.state = 'committed';
        break;
      case 'rollback':
        this.taken = { rpd: 0, tpd: 0, slots: 0 };
        this.state = 'rolled-back';
        break;
      case 'extend':
        break;
    }
    return 'done';
  }

  #release(): Outcome {
    this.taken.slots = 0;
    return 'done';
  }
}

function endsAs(step: Step): string | null {
  if (step.kind === 'commit') return 'committed';
  return step.kind === 'rollback' ? 'rolled-back' : null;
}

/** Makes a step with a real lease. `killed`: its outcome is not known. */
export async function perform(lease: Lease, step: Step): Promise<Outcome | 'killed'> {
  try {
    if (step.kind === 'settle') await lease.settle({ tpd: step.tpd });
    else if (step.kind === 'adjust') await lease.adjust({ tpd: step.tpd }, { operationId: step.id });
    else if (step.kind === 'commit') await lease.commit(step.tpd === null ? undefined : { tpd: step.tpd });
    else await lease[step.kind]();
    return 'done';
  } catch (error) {
    if (isHeadgateError(error, 'lease.closed')) return 'closed';
    if (isHeadgateError(error, 'backend.unavailable')) return 'killed';
    throw error;
  }
}
