import type { Awaitable, ChargeReceipt, LevelCharge } from '../../backend.js';
import { type Amount, amountOf } from '../../core/bucket/decide.js';
import { checkReceiptId, describeCharge } from '../../core/bucket/receipt.js';
import { LimitsNotConfigured, ValidationError } from '../../core/errors.js';
import { sub } from '../../core/int.js';
import { checkKnownFields } from '../../core/known-fields.js';
import { isConsumed } from '../../core/limit-kind.js';
import { kindOf } from '../acquire/levels.js';
import { type Amounts, readAmounts } from '../acquire/request.js';
import { acceptChain } from '../config/accept-chain.js';
import type { CachedConfig } from '../config/config-cache.js';
import { callStore, type Context, endOfCall, timeLeft } from '../context.js';

/** The entity, the resource and the amounts of a charge or credit without a lease. */
export interface ChargeRequest<L extends string = string> {
  readonly entityId: string;
  readonly resource: string;
  /** In whole tokens, of rates and unlimited limits. */
  readonly amounts: Amounts<L>;
  /** Makes the call count once within 24 hours, however often it is repeated. Unique for the entity and the resource. */
  readonly id?: string;
}

const CHARGE_FIELDS: ReadonlySet<string> = new Set([
  'entityId',
  'resource',
  'amounts',
  'id',
] satisfies (keyof ChargeRequest)[]);

/** Charges or credits every level of the chain that has the limits. Reads the request before its first `await`. */
export async function charge(
  opened: () => Awaitable<Context>,
  kind: 'charge' | 'credit',
  request: ChargeRequest,
): Promise<void> {
  const amounts = checkCharge(request);
  const { entityId, resource } = request;
  const receipt = receiptOf(kind, request, amounts);
  const context = await opened();
  const nowMs = context.clock.now();
  const endMs = endOfCall(context, nowMs);
  const chain = await context.resolver.chain(entityId, resource, nowMs, endMs);
  const levels = await acceptChain(context, chain, nowMs, (known) =>
    buildCharges(kind, { entityId, resource }, known, amounts),
  );
  if (levels.length === 0) return;
  const timeoutMs = timeLeft(context, endMs, WHERE[kind]);
  const { kind: outcome } = await callStore(
    context,
    WHERE[kind],
    (call) => context.backend.charge(call, { levels, receipt }),
    nowMs,
    timeoutMs,
  );
  if (outcome === 'id-used') {
    throw new ValidationError('id', 'an id that no other charge or credit of the last 24 hours has', receipt?.id);
  }
  if (outcome === 'charged' && kind === 'credit') {
    for (const level of levels) context.lines.giveBack(level, amounts);
  }
}

const WHERE = { charge: 'charging', credit: 'crediting' } as const;

function checkCharge(request: ChargeRequest): readonly Amount[] {
  if (typeof request !== 'object' || request === null) throw new ValidationError('request', 'an object', request);
  checkKnownFields('request', request, CHARGE_FIELDS);
  if (request.id !== undefined) checkReceiptId(request.id);
  const amounts = readAmounts('amounts', request.amounts, 0);
  if (amounts.length > 0) return amounts;
  throw new ValidationError('amounts', 'an amount of at least one limit', request.amounts);
}

function receiptOf(
  kind: 'charge' | 'credit',
  { entityId, resource, id }: ChargeRequest,
  amounts: readonly Amount[],
): ChargeReceipt | null {
  return id === undefined ? null : { entityId, resource, id, content: describeCharge(kind, amounts) };
}

/** What each level is charged (positive) or credited (negative). Levels without one of the limits are left out. */
function buildCharges(
  kind: 'charge' | 'credit',
  { entityId, resource }: Pick<ChargeRequest, 'entityId' | 'resource'>,
  chain: readonly CachedConfig[],
  amounts: readonly Amount[],
): readonly LevelCharge[] {
  if (chain[0] === undefined || chain[0].resolved.limits.length === 0) {
    throw new LimitsNotConfigured(entityId, resource);
  }
  const levels = chain.map((config) => ({ config, limits: config.resolved.limits }));
  for (const { name } of amounts) refuseUnlessConsumed(name, levels);
  return levels.flatMap(({ config, limits }): LevelCharge[] => {
    const deltas = limits.flatMap(({ name }) => {
      const milli = amountOf(amounts, name) ?? 0;
      return milli === 0 ? [] : [{ name, milli: kind === 'charge' ? milli : sub(0, milli) }];
    });
    if (deltas.length === 0) return [];
    const { version, configSource } = config.resolved;
    const lasting = configSource === 'entity';
    return [{ entityId: config.entityId, resource: config.resource, limits, version, lasting, deltas }];
  });
}

function refuseUnlessConsumed(name: string, levels: readonly Pick<LevelCharge, 'limits'>[]): void {
  const kinds = levels.map((level) => kindOf(level, name)).filter((kind) => kind !== undefined);
  if (kinds.length > 0 && kinds.every(isConsumed)) return;
  const known = new Set(
    levels.flatMap(({ limits }) => limits.filter(({ kind }) => isConsumed(kind))).map((l) => l.name),
  );
  const expected = `the name of a rate or of an unlimited limit (${[...known].join(', ')})`;
  throw new ValidationError(`amounts.${name}`, expected, name);
}
