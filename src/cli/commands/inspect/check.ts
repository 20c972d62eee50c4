import { NamespaceNotFound } from '../../../core/errors.js';
import { addExamples, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';

/** `--json` of `check` */
export interface CheckShape {
  readonly ok: true;
  readonly store: string;
  readonly latencyMs: number;
  readonly namespace: string;
  readonly namespaceId: string;
}

export const define: Definition = (command, context) => {
  addExamples(command, ['check --store file:./limits.db', 'check --namespace acme --json']).action(
    onStore(context, check),
  );
};

/** Checks that the store answers, that its version is supported, and that it has the namespace. */
const check: StoreAction = async ({ limiter, address, namespace }): Promise<Result<CheckShape>> => {
  // The first ping also opens the store; the second measures a single call.
  const opening = await limiter.ping();
  const ping = opening.ok ? await limiter.ping() : opening;
  if (!ping.ok) throw ping.error;
  const found = await limiter.namespaces.get(namespace);
  if (found === null) throw new NamespaceNotFound(namespace);
  const data: CheckShape = {
    ok: true,
    store: address,
    latencyMs: ping.latencyMs,
    namespace: found.name,
    namespaceId: found.id,
  };
  return {
    data,
    text: (style) =>
      [
        style.green('ok'),
        `store      ${data.store} (answers in ${data.latencyMs < 1 ? 'less than 1' : data.latencyMs} ms)`,
        `namespace  ${data.namespace} (id ${data.namespaceId})`,
      ].join('\n'),
  };
};
