import type { AskBody, AvailableBody, DenialBody, GrantBody, StatusBody } from '../../src/client/client.js';
import type { ProblemBody } from '../../src/client/http.js';
import type { LeaseBody, LeaseMark, LeaseOperations } from '../../src/client/remote-lease.js';

/** One object type for an intersection or an interface. What is optional stays so, without a possible `undefined`. */
type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Plain<Exclude<T[Key], undefined>> }
    : T;

/** `true` if the types are identical. Assignment both ways would not notice an optional field that only one of them has. */
type Same<A, B> =
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the compiler compares such functions exactly
  (<T>() => T extends Plain<A> ? 1 : 2) extends <T>() => T extends Plain<B> ? 1 : 2 ? true : { client: A; server: B };

type OperationOf<Operations, Id extends string> = Id extends keyof Operations ? Operations[Id] : never;

type Sent<Operations, Id extends string> =
  OperationOf<Operations, Id> extends { readonly requestBody: { readonly content: infer Content } }
    ? Content[keyof Content]
    : 'no body';

type Answered<Operations, Id extends string, Status extends number = 200> =
  OperationOf<Operations, Id> extends {
    readonly responses: { readonly [Key in Status]: { readonly content: infer Content } };
  }
    ? Content[keyof Content]
    : 'no answer';

type Query<Operations, Id extends string> =
  OperationOf<Operations, Id> extends { readonly parameters: { readonly query: infer Asked } } ? Asked : 'no query';

type OfLease<Kind extends keyof LeaseOperations> = LeaseOperations[Kind] & LeaseMark;

interface Statuses {
  readonly statuses: readonly StatusBody[];
}

interface Where {
  readonly entityId: string;
  readonly resource: string;
}

/** The members that every problem has. Of a denial the client also reads the others. */
type OfProblem = 'type' | 'title' | 'status' | 'detail' | 'code' | 'violated-policies';

/**
 * What the client sends and reads, compared with the types that were generated from the OpenAPI document. Each member
 * is `true`, or shows both types.
 */
export interface Contract<Operations> {
  readonly acquire: Same<AskBody, Sent<Operations, 'acquire'>>;
  readonly grant: Same<GrantBody, Answered<Operations, 'acquire'>>;
  readonly denial: Same<DenialBody, Omit<Answered<Operations, 'acquire', 429>, OfProblem>>;
  readonly impossible: Same<DenialBody, Omit<Answered<Operations, 'acquire', 422>, OfProblem>>;
  readonly problem: Answered<Operations, 'acquire', 400> extends ProblemBody ? true : { readonly client: ProblemBody };
  readonly peek: Same<AskBody, Sent<Operations, 'peek'>>;
  readonly peeked: Same<Statuses, Answered<Operations, 'peek'>>;
  readonly status: Same<Where, Query<Operations, 'status'>>;
  readonly statuses: Same<Statuses, Answered<Operations, 'status'>>;
  readonly available: Same<Where, Query<Operations, 'available'>>;
  readonly availables: Same<AvailableBody, Answered<Operations, 'available'>>;
  readonly settle: Same<OfLease<'settle'>, Sent<Operations, 'settleLease'>>;
  readonly adjust: Same<OfLease<'adjust'>, Sent<Operations, 'adjustLease'>>;
  readonly extend: Same<OfLease<'extend'>, Sent<Operations, 'extendLease'>>;
  readonly release: Same<OfLease<'release'>, Sent<Operations, 'releaseLease'>>;
  readonly commit: Same<OfLease<'commit'>, Sent<Operations, 'commitLease'>>;
  readonly rollback: Same<OfLease<'rollback'>, Sent<Operations, 'rollbackLease'>>;
  readonly lease: Same<{ readonly lease: LeaseBody }, Answered<Operations, 'settleLease'>>;
}
