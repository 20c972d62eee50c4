let isScheduled = false;

/**
 * Frees, in one of the next turns of the event loop, what is no longer referenced by then. One full garbage collection
 * serves all calls of one turn.
 */
export function collectGarbageSoon(): void {
  if (isScheduled) return;
  isScheduled = true;
  // Not at once: the stack of the caller still references what shall be freed.
  setImmediate(() => {
    isScheduled = false;
    collectGarbage();
  }).unref();
}

/** Node has `gc` only with `--expose-gc`. A new context has it if the flag is set while the context is made. */
function collectGarbage(): void {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  const { runInNewContext } = process.getBuiltinModule('node:vm');
  setFlagsFromString('--expose-gc');
  try {
    runInNewContext('gc')();
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
