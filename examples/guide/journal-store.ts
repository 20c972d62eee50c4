// #region all
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { type Backend, Limit, memory } from 'headgate';

type Writes = Map<string, (args: readonly unknown[]) => unknown>;

/**
 * A store that survives the end of its process: every write is appended to a file before it is made in memory, and `open`
 * makes the writes of the file again. That works because a store reads no clock and draws no ids: each call has them.
 * For one process at a time.
 */
export function journal(path: string): Backend {
  const inner = memory();
  const writes: Writes = new Map();
  let end: number | null = null;

  /** The write, with a line in the file before it: a call that the file does not have is not answered. */
  const logged = <Args extends readonly unknown[], Result>(name: string, write: (...args: Args) => Result) => {
    writes.set(name, (args) => write(...(args as Args)));
    return (...args: Args): Result => {
      appendFileSync(end ?? path, `${encode([name, args])}\n`);
      return write(...args);
    };
  };

  const { config, entities, managed, namespaces, buckets, leases } = inner;
  return {
    name: 'journal',
    ephemeral: false,
    open: () => {
      if (end !== null) return;
      replay(path, writes);
      end = openSync(path, 'a');
    },
    close: () => {
      if (end !== null) closeSync(end);
      end = null;
    },

    consume: logged('consume', (call, request) => inner.consume(call, request)),
    adjust: logged('adjust', (call, request) => inner.adjust(call, request)),
    charge: logged('charge', (call, request) => inner.charge(call, request)),
    operate: logged('operate', (call, request) => inner.operate(call, request)),
    extend: logged('extend', (call, request) => inner.extend(call, request)),
    peek: (call, levels) => inner.peek(call, levels),
    // `resident` is left out: with it, an acquire would take from memory without a call of `consume`.

    config: { ...config, write: logged('config.write', config.write) },
    entities: {
      ...entities,
      create: logged('entities.create', entities.create),
      update: logged('entities.update', entities.update),
      delete: logged('entities.delete', entities.delete),
      pause: logged('entities.pause', entities.pause),
    },
    managed: { ...managed, mark: logged('managed.mark', managed.mark) },
    namespaces: {
      ...namespaces,
      register: logged('namespaces.register', namespaces.register),
      delete: logged('namespaces.delete', namespaces.delete),
      recover: logged('namespaces.recover', namespaces.recover),
      purge: logged('namespaces.purge', namespaces.purge),
    },
    audit: inner.audit,
    usage: inner.usage,
    buckets: {
      ...buckets,
      reset: logged('buckets.reset', buckets.reset),
      pause: logged('buckets.pause', buckets.pause),
    },
    leases: { ...leases, release: logged('leases.release', leases.release) },
  };
}

/** Makes the writes of the file again. A write that was refused is refused again. */
function replay(path: string, writes: Writes): void {
  if (!existsSync(path)) return;
  const text = readFileSync(path, 'utf8');
  // A process that was killed may have left a part of a line. Its call got no answer, so the part is removed.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  truncateSync(path, Buffer.byteLength(whole));
  for (const line of whole.split('\n').slice(0, -1)) {
    const [name, args] = decode(line) as readonly [string, readonly unknown[]];
    try {
      writes.get(name)?.(args);
    } catch {
      // Its caller got the same error.
    }
  }
}

function encode(value: unknown): string {
  return JSON.stringify(value, (key, part: unknown) => {
    if (key === 'signal' || key === 'tuning') return undefined;
    if (typeof part === 'bigint') return { $int: String(part) };
    return part instanceof Limit ? { $limit: String(part) } : part;
  });
}

function decode(line: string): unknown {
  return JSON.parse(line, (_, part: unknown) => {
    const { $int, $limit } = (part ?? {}) as { readonly $int?: string; readonly $limit?: string };
    if ($int !== undefined) return BigInt($int);
    return $limit === undefined ? part : Limit.parse($limit);
  });
}
// #endregion all
