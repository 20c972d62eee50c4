/** Gives back what an answer hands over. */
export type GiveBack = () => Promise<void>;

const giveBacks = new WeakMap<Response, GiveBack>();

/** Keeps how to give back what this answer hands over, for a server that can see whether the client got it. */
export function setGiveBack(response: Response, giveBack: GiveBack): Response {
  giveBacks.set(response, giveBack);
  return response;
}

export function giveBackOf(response: Response): GiveBack | undefined {
  return giveBacks.get(response);
}
