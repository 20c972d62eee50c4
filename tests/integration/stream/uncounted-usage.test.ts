import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { createProgram } from '../../../src/cli/run/program.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../support/dynamodb/world.js';
import { fakeTerminal } from '../../support/cli/fake-terminal.js';
import { workOff } from '../../support/stream/world.js';

const LIMITS = [Limit.perDay('rpd', 100)];
const NOTE = 'gpt-4 is in use, but its usage was never counted: start `headgate worker`, or deploy a stack';

describe.skipIf(ENGINE.missing)(`usage of a table whose stream was never read${ENGINE.note}`, () => {
  let world: DynamoWorld;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test('usage commands note that usage was never counted, until a worker counts it', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const { endpoint, region } = world.engine;
    const store = `dynamodb://${world.table.name}?region=${region}&endpoint=${endpoint}`;
    const notesOf = async (line: string): Promise<readonly string[]> => {
      const terminal = fakeTerminal();
      const args = [...line.split(' '), '--store', store, '--namespace', space.namespace];
      await createProgram(terminal, '0.0.0').parseAsync(args, { from: 'user' });
      return terminal.notes;
    };
    const COMMANDS = ['usage list gpt-4', 'usage summary gpt-4', 'usage plot gpt-4'];
    for (const line of COMMANDS) expect(await notesOf(line), line).toEqual([]);
    await limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpd: 1 } });
    for (const line of COMMANDS) expect(await notesOf(line), line).toEqual([NOTE]);
    await workOff(world);
    for (const line of COMMANDS) expect(await notesOf(line), line).toEqual([]);
  });
});
