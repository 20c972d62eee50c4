import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS, OPERATIONS, permissionsOf, putUsage } from '../../../support/dynamodb/permissions.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const PAGE = readFileSync(new URL('../../../../docs/backends/dynamodb.md', import.meta.url), 'utf8');
const SECTION = PAGE.slice(PAGE.indexOf('## Permissions'));

describe.skipIf(ENGINE.missing)(`permissions on the page on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test.each(Object.entries(OPERATIONS))(
    'the page on DynamoDB lists the permissions that this operation needs, and no others: %s',
    async (operation, use) => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS });
      await limiter.entities.create({ id: 'proj-1' });
      await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
      await limiter.config.setResource('gpt-4', { limits: LIMITS });
      await limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpd: 1, slots: 1 } });
      await putUsage(world, space);
      const { requests } = world.proxy;
      requests.clear();
      await use({ world, space, limiter });
      const needed = new Set(requests.recorded.flatMap(permissionsOf));
      const row = SECTION.split('\n').find((line) => line.startsWith(`| ${operation} |`));
      expect(row).toBe(`| ${operation} | ${[...needed].toSorted().join(', ')} |`);
    },
  );
});
