import { createWriteId } from '../../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { planMerge, planSplit } from '../../../../src/backends/dynamodb/bucket/split.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import { sendRepeatable, type Table } from '../../../../src/backends/dynamodb/client/requests.js';
import { readBuckets } from '../../../../src/backends/dynamodb/table/read-buckets.js';
import { buildMerge, buildSplit } from '../write-inputs.js';

const TIMEOUT_MS = 10_000;
const MAX_SHARDS = 4;

interface Resharding {
  readonly table: Table;
  readonly ns: string;
  readonly nowMs: number;
  readonly bucket: { readonly entityId: string; readonly resource: string };
}

/**
 * Splits the first shard that may be split, or merges the first pair that may be merged. False: there is none, or
 * another write came first.
 */
export async function reshard({ table, ns, nowMs, bucket }: Resharding, how: 'split' | 'merge'): Promise<boolean> {
  const deadline = deadlineIn(TIMEOUT_MS);
  const target = { tableName: table.name, ns };
  const writeId = createWriteId(nowMs, Math.random);
  const [shards = []] = await readBuckets(table, ns, [bucket], deadline);
  for (const image of shards) {
    const other = shards.find(({ key }) => key.shard === image.key.shard + image.shardCount / 2);
    const merge = other === undefined ? null : planMerge(image, other, nowMs);
    if (how === 'split' && image.shardCount < MAX_SHARDS) {
      const input = buildSplit(target, image, planSplit(image, nowMs), writeId);
      return (await sendRepeatable(table, 'TransactWriteItems', input, deadline)).ok;
    }
    if (how === 'merge' && other !== undefined && merge !== null) {
      const input = buildMerge(target, image, other, merge, writeId);
      return (await sendRepeatable(table, 'TransactWriteItems', input, deadline)).ok;
    }
  }
  return false;
}
