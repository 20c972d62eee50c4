import { type AccessToken, coversEntity } from './access-token.js';
import { type Problem, serverProblem } from './problem.js';

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
