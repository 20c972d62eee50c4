import type { ResourceShape } from './resource.js';
import type { Instant, LimitText, PauseShape } from '../../run/common-shapes.js';

/** `--json` of `entity create`, items of `entity list` and `entity children` */
export interface EntityShape {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  /** All its own limits are shadows. Left out: they refuse as configured. */
  readonly bypass?: true;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdAt: Instant;
  readonly version: number;
  /** null: not paused. */
  readonly paused: PauseShape | null;
}

/** `--json` of `entity show`, `entity set` */
export interface EntityViewShape {
  readonly id: string;
  /** null: there is no record, only limits. */
  readonly entity: EntityShape | null;
  /** Its own limits for every resource without limits of its own. */
  readonly defaultLimits: readonly LimitText[];
  readonly resources: readonly ResourceShape[];
}
