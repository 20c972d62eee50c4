import { type AccessToken, coversEntity, mayOverride } from './access-token.js';
import { type Problem, serverProblem } from '../answer/problem.js';

/** Ends a request with an answer that is not an error of the library. */
export class Refusal extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Throws unless the token covers the entity. null: the server has no tokens. */
export function refuseOtherEntity(token: AccessToken | null, entityId: string): void {
  if (token === null || coversEntity(token, entityId)) return;
  const detail = `The token covers entities that begin with ${token.entityPrefix}`;
  throw new Refusal(serverProblem('access.denied', detail));
}

/** Throws if the request replaces configuration by these fields, and the token may not. */
export function refuseOverrides(token: AccessToken, fields: readonly string[]): void {
  if (fields.length === 0 || mayOverride(token)) return;
  const detail = `The token may not send ${fields.join(' and ')}: the limits of its entities are configured by an admin`;
  throw new Refusal(serverProblem('access.denied', detail));
}
