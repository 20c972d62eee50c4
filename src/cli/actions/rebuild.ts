import { wholeTokens } from '../../core/bucket/decide.js';
import { rebuildUsage } from '../../backends/dynamodb/stream/usage/rebuild.js';
import { drawTable } from '../../visualize/table.js';
import type { StoreAction } from '../define-command.js';
import type { UsageRebuildShape } from '../shapes.js';
import { requireDynamoDB } from './dynamodb-address.js';

export const rebuild: StoreAction = async ({ address, namespace }, [entityId = '', resource = '']) => {
  const report = await rebuildUsage({ ...requireDynamoDB(address), namespace, entityId, resource });
  const { addedMilli, acquires, expired } = report;
  const added = Object.fromEntries([...addedMilli].map(([limit, milli]) => [limit, wholeTokens(milli)]));
  const data: UsageRebuildShape = { entityId, resource, added, acquires, expired };
  const rows = [...Object.entries(added), ['acquires', acquires], ['expired', expired]].map((row) => row.map(String));
  return {
    data,
    text: ({ width }) =>
      addedMilli.size === 0 && acquires === 0 && expired === 0
        ? `Nothing was missing of ${entityId} on ${resource}.`
        : drawTable(['LIMIT', 'ADDED'], rows, width),
  };
};
