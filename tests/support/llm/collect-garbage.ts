import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects everything that is not reachable. Callbacks about it run later. */
export const collectGarbage = runInNewContext('gc') as () => void;
