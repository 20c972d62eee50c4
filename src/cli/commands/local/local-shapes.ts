import type { LimitsPlanShape } from '../manage/limits-shapes.js';
import type { Instant } from '../../run/common-shapes.js';

/** The engine on this machine */
interface LocalEngineShape {
  readonly engine: 'dynoxide' | 'dynamodb-local';
  readonly pid: number;
  readonly port: number;
  /** The value for HEADGATE_URL. */
  readonly url: string;
  /** The file, or the folder of DynamoDB Local, that keeps the table. */
  readonly data: string;
  readonly log: string;
  readonly startedAt: Instant;
}

/** `--json` of `local up` */
export interface LocalUpShape extends LocalEngineShape {
  /** false: it ran already. */
  readonly started: boolean;
  /** With `--seed`: the output of `limits apply`. */
  readonly seed: LimitsPlanShape | null;
}

/** `--json` of `local status` */
export type LocalStatusShape =
  | (LocalEngineShape & { readonly running: true; readonly answers: boolean })
  | ({ readonly [Field in Exclude<keyof LocalEngineShape, 'data'>]: null } & {
      readonly running: false;
      readonly answers: false;
      /** null: there is no data. */
      readonly data: string | null;
    });

/** `--json` of `local down` */
export interface LocalDownShape {
  /** null: none ran. */
  readonly pid: number | null;
  readonly purged: boolean;
  readonly data: string | null;
}
