import type { EntityRecord } from '../../../../backend.js';
import { newPausedEntity, withPause } from '../../../../core/config/paused-records.js';
import { laterPause } from '../../../../core/pause.js';
import { sameJson } from '../../../../core/manifest/same-json.js';
import { deadlineIn } from '../../../../machine-time.js';
import { errorOf } from '../../client/failures.js';
import { REQUEST_MS, readItem, sendRepeatable, type Table } from '../../client/requests.js';
import { readOldRecord } from '../../schema/old-record.js';
import { withRetries } from '../../schema/retry.js';
import { ABSENT, putAction } from '../../stores/actions.js';
import { buildEntityKey } from '../../table/keys.js';
import { decodeEntity, encodeEntity } from '../../table/records.js';
import { DISABLED_PAUSE, type EntitySetting } from '../legacy/disabled-levels.js';
import { childrenOf } from './plan-records.js';
import { stillWritten } from '../phases.js';

/**
 * Pauses the entities that were disabled, and lets those bypass that were bypassed: in the record of the entity, which
 * is created if there is none. Runs while no client is accepted. Repeating it gives the same result.
 */
export async function writeEntitySettings(
  table: Table,
  settings: readonly EntitySetting[],
  signal?: AbortSignal,
): Promise<void> {
  for (const setting of settings) await withRetries(async () => writeSetting(table, setting), signal);
}

/** How often a record that changed meanwhile is read again. A write whose answer was lost has changed it, too. */
const MAX_ATTEMPTS = 3;

async function writeSetting(table: Table, setting: EntitySetting, attempt = 1): Promise<void> {
  const { ns, entityId, access } = setting;
  const deadline = deadlineIn(REQUEST_MS);
  const item = await readItem(table, buildEntityKey(ns, entityId), deadline);
  // A record that was left is refused by every client.
  if (item !== undefined && readOldRecord(item) !== null) return;
  const nowMs = table.transport.storeTimeMs() ?? Date.now();
  const before: EntityRecord = item === undefined ? newPausedEntity(entityId, nowMs) : decodeEntity(item);
  const after: EntityRecord =
    access === 'bypass' ? { ...before, bypass: true } : withPause(before, laterPause(before.pause, DISABLED_PAUSE));
  if (sameJson(after, before)) return;
  const record = { ...encodeEntity(ns, { ...after, version: before.version + 1 }), ...(item && childrenOf(item)) };
  const { Put } = putAction(table, record, item === undefined ? ABSENT : { version: item['version'] });
  if (Put === undefined) return;
  const answer = await sendRepeatable(table, 'PutItem', Put, deadline);
  if (answer.ok) return;
  if (answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'PutItem');
  if (attempt === MAX_ATTEMPTS) throw stillWritten(`the entity ${entityId} keeps changing`);
  await writeSetting(table, setting, attempt + 1);
}
