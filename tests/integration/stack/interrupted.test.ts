import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deployStack } from '../../../src/infra/stack/deploy-stack.js';
import { chooseNames } from '../../../src/infra/stack/stack-name.js';
import { type Engine, startEngine } from '../../../src/testing/dynamodb/index.js';
import { type AwsServer, startAwsServer } from '../../support/aws/aws-server.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { type SimulatedAws, simulatedAws } from '../../support/aws/simulated-aws.js';
import { BUNDLES, makeEmptyTable, stackWorld, wanted } from '../../support/aws/stack-world.js';

const CODE = BUNDLES.map(({ code }) => code.sha256);

/** A deployment whose process ends with its `last` request, which still takes effect. */
async function deployUntil(aws: SimulatedAws, engine: Engine, env: string, last: number) {
  let asked = 0;
  let end: () => void = () => {};
  const ended = new Promise<null>((resolve) => {
    end = () => resolve(null);
  });
  const server: AwsServer = await startAwsServer(async (request) => {
    asked += 1;
    if (asked < last) return aws.answer(request);
    if (asked === last) await aws.answer(request);
    end();
    return { hangs: true };
  });
  const { tools, watcher } = stackWorld(server.endpoint, engine, { callMs: 60_000 });
  const deploying = deployStack(tools, watcher, wanted({ names: chooseNames({ env }) }));
  const done = await Promise.race([deploying, ended]);
  deploying.catch(() => {});
  await server[Symbol.asyncDispose]();
  return done;
}

describe.skipIf(ENGINE.missing)(`interrupted deployments${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  test('the next deployment completes one that ended at any request', async () => {
    let last = 1;
    for (; ; last += 1) {
      const env = `until-${last}`;
      const aws = simulatedAws(async (name) => makeEmptyTable(engine, name));
      if ((await deployUntil(aws, engine, env, last)) !== null) break;
      const done = await deployUntil(aws, engine, env, Number.POSITIVE_INFINITY);
      expect(done?.stack?.status).toBe('CREATE_COMPLETE');
      expect([...aws.functions.values()]).toEqual(CODE);
      expect([...aws.changeSets]).toEqual([]);
      const { tools } = stackWorld(engine.endpoint, engine);
      expect(await tools.tables.readVersion(`headgate-${env}`)).toMatchObject({ kind: 'current' });
    }
    expect(last).toBeGreaterThan(10);
  });
});
