import { describe, expect, test } from 'vitest';
import { memory } from '../../src/index.js';
import type { Backend, ConsumeRequest, LevelChange } from '../../src/backend.js';
import { type BackendSuite, describeBackend } from '../../src/testing/backend.js';

interface Recorded {
  readonly topic: string;
  readonly title: string;
  readonly skipped: boolean;
  readonly body: () => Promise<void>;
}

/** The cases that the suite passes to a test runner. */
function record(options: Partial<BackendSuite>): Recorded[] {
  const recorded: Recorded[] = [];
  const topics: string[] = [];
  const add = (skipped: boolean) => (title: string, body: () => Promise<void>) =>
    recorded.push({ topic: topics.at(-1) ?? '', title, skipped, body });
  describeBackend('a store', {
    describe: (topic, body) => {
      topics.push(topic);
      body();
      topics.pop();
    },
    test: Object.assign(add(false), { skip: add(true) }),
    create: () => memory(),
    ...options,
  });
  return recorded;
}

async function failuresOf(topic: string, create: () => Backend): Promise<string[]> {
  const failed: string[] = [];
  for (const { title, body } of record({ create }).filter((recorded) => recorded.topic === topic)) {
    await body().catch(() => failed.push(title));
  }
  return failed;
}

describe('the conformance suite', () => {
  test('the suite has more than a hundred cases, each with a different title', () => {
    const titles = record({}).map(({ title }) => title);
    expect(titles.length).toBeGreaterThan(100);
    expect(titles.filter((title, at) => titles.indexOf(title) !== at)).toEqual([]);
  });

  test('the title of a skipped case has the reason', () => {
    const title = 'a bucket with a capacity of 1 grants once';
    const skipped = record({ skip: [{ title, reason: 'no small numbers' }] }).filter((recorded) => recorded.skipped);
    expect(skipped.map((recorded) => recorded.title)).toEqual([
      `${title} (skipped: no small numbers)`,
      `${title}, asked in a group (skipped: no small numbers)`,
    ]);
  });

  test('skipping a case that the suite does not have is refused', () => {
    expect(() => record({ skip: [{ title: 'grants everything', reason: 'why not' }] })).toThrow('grants everything');
  });

  test('the suite disposes of the store after each case, also after a failed one', async () => {
    const disposed: unknown[] = [];
    const stores = [memory(), { ...memory(), consume: () => Promise.reject(new Error('broken')) }];
    const create = (): Backend => stores[disposed.length] ?? memory();
    const [first, second] = record({ create, dispose: (backend) => void disposed.push(backend) });
    await first?.body();
    await expect(second?.body()).rejects.toThrow('broken');
    expect(disposed).toEqual(stores);
  });

  test('the suite catches up before it reads usage', async () => {
    let caughtUp = 0;
    const recorded = record({ catchUp: () => void caughtUp++ });
    await recorded.find(({ title }) => title === 'the first acquire of a bucket counts as usage')?.body();
    expect(caughtUp).toBe(2);
  });

  test('the suite reports failures that no caller awaited', async () => {
    const create = (): Backend => {
      const store = memory();
      let reads = 0;
      const readFor: Backend['config']['readFor'] = (...args) => {
        reads += 1;
        if (reads > 2) throw new Error('unheard');
        return store.config.readFor(...args);
      };
      return { ...store, config: { ...store.config, readFor } };
    };
    const recorded = record({ create });
    const rereading = recorded.find(({ title }) => title.startsWith('limits in code reach an existing bucket'));
    await expect(rereading?.body()).rejects.toThrow('failures that no caller awaited');
  });
});

/** Stores with one fault each, and the topic that must notice it. */
const FAULTY: readonly (readonly [fault: string, topic: string, create: () => Backend])[] = [
  [
    'takes twice',
    'takes',
    () => changing({ consume: (store, call, request) => (store.consume(call, request), store.consume(call, request)) }),
  ],
  [
    'asks only the first level',
    'cascade',
    () =>
      changing({
        consume: (store, call, request) => store.consume(call, { ...request, levels: request.levels.slice(0, 1) }),
      }),
  ],
  [
    'measures time in seconds',
    'waits',
    () =>
      changing({
        consume: (store, call, request) =>
          store.consume({ ...call, nowMs: Math.floor(call.nowMs / 1_000) * 1_000 }, request),
      }),
  ],
  ['forgets versions', 'config changes', () => forgettingVersions()],
  [
    'keeps no holders',
    'slots',
    () =>
      changing({
        consume: (store, call, request) =>
          store.consume(call, { ...request, levels: request.levels.map((level) => ({ ...level, holder: null })) }),
      }),
  ],
  ['gives no slots back', 'leases', () => adjusting((level) => ({ ...level, refundsOnExpiry: false, holder: 'none' }))],
  [
    'drops debits',
    'leases',
    () =>
      adjusting((level) => ({
        ...level,
        refundsOnExpiry: false,
        amounts: level.amounts.filter(({ fromMilli, toMilli }) => toMilli < fromMilli),
      })),
  ],
  [
    'does not know what an expiry gave back',
    'expiry',
    () => adjusting((level) => ({ ...level, refundsOnExpiry: false })),
  ],
  ['extends nothing', 'expiry', () => changing({ extend: () => true })],
  [
    'looks without taking back',
    'status',
    () => changing({ peek: (store, call, levels) => store.peek({ ...call, nowMs: call.nowMs - 60_000 }, levels) }),
  ],
  [
    'has one namespace',
    'namespaces',
    () => changing({ peek: (store, call, levels) => store.peek({ ...call, namespaceId: 'default' }, levels) }),
  ],
  ['drops the marks of changes that change nothing', 'managed marks', () => markingOnlyChanges()],
  ['does not look what the mark was', 'managed marks', () => markingBlindly()],
  ['marks before it refuses', 'managed marks', () => markingFirst()],
  ['calls an ask impossible that meets another', 'slots, asked in groups', () => judgingGroupsBadly('impossible')],
  ['calls an ask contended that meets another', 'takes, asked in groups', () => judgingGroupsBadly('contended')],
  ['admits every ask of a group that it would admit alone', 'takes, asked in groups', () => admittingTogether()],
  ['reads in another order', 'many at once', () => reading((found) => found.toReversed())],
  ['reads each only once', 'many at once', () => reading((found) => [...new Set(found)])],
];

test.each(FAULTY)('the suite notices a store that %s, in %s', async (_fault, topic, create) => {
  expect(await failuresOf(topic, create)).not.toEqual([]);
});

test.each(['takes', 'takes, asked in groups'])(
  'the suite finds nothing wrong with a store that is passed through unchanged, in %s',
  async (topic) => {
    expect(await failuresOf(topic, () => changing({}))).toEqual([]);
  },
);

test.each(['takes', 'slots'])(
  'only the cases in groups notice a store that judges concurrent asks wrongly, in %s',
  async (topic) => {
    expect(await failuresOf(topic, () => judgingGroupsBadly('impossible'))).toEqual([]);
    expect(await failuresOf(topic, () => admittingTogether())).toEqual([]);
  },
);

test('a store that does not order the asks of a process can run the suite without groups', () => {
  const topics = (inGroups: boolean): string[] => [...new Set(record({ inGroups }).map(({ topic }) => topic))];
  expect(topics(true).filter((topic) => topic.endsWith('in groups')).length).toBeGreaterThan(5);
  expect(topics(false).filter((topic) => topic.endsWith('in groups'))).toEqual([]);
});

type Changed = {
  [Method in 'consume' | 'adjust' | 'extend' | 'peek']?: (
    store: Backend,
    ...args: Parameters<Backend[Method]>
  ) => ReturnType<Backend[Method]>;
};

function changing(changed: Changed): Backend {
  const store = memory();
  const methods = Object.entries(changed).map(([name, method]) => [
    name,
    (...args: unknown[]) => Reflect.apply(method, undefined, [store, ...args]) as unknown,
  ]);
  return { ...store, ...(Object.fromEntries(methods) as Partial<Backend>) };
}

function adjusting(change: (level: LevelChange) => LevelChange): Backend {
  return changing({
    adjust: (store, call, { leaseId, levels }) => store.adjust(call, { leaseId, levels: levels.map(change) }),
  });
}

/** Gives all concurrent asks but the first a wrong reason for their denial. */
function judgingGroupsBadly(reason: 'impossible' | 'contended'): Backend {
  let underWay = 0;
  return changing({
    consume: async (store, call, request) => {
      underWay += 1;
      const isAlone = underWay === 1;
      const outcome = await store.consume(call, request);
      await Promise.resolve();
      underWay -= 1;
      return isAlone || outcome.kind !== 'denied' ? outcome : { ...outcome, reason };
    },
  });
}

/** Judges all concurrent asks by the balance before the first of them. */
function admittingTogether(): Backend {
  const underWay = new Set<object>();
  return changing({
    consume: async (store, call, request) => {
      const others = underWay.size;
      underWay.add(request);
      const outcome = await store.consume(call, request);
      await Promise.resolve();
      underWay.delete(request);
      if (others === 0 || outcome.kind !== 'denied' || outcome.reason === 'impossible') return outcome;
      return { kind: 'granted', levels: outcome.levels };
    },
  });
}

/** Treats every config as the newest. */
function forgettingVersions(): Backend {
  let sequence = 0;
  const newest = ({ leaseId, levels }: ConsumeRequest): ConsumeRequest => {
    sequence += 1;
    return { leaseId, levels: levels.map((level) => ({ ...level, version: { sequence, openedAtMs: 0 } })) };
  };
  return changing({ consume: (store, call, request) => store.consume(call, newest(request)) });
}

function markingOnlyChanges(): Backend {
  const store = memory();
  const write: Backend['config']['write'] = async (call, level, change) => {
    const before = await store.config.read(call, level);
    const isSame = String(before?.limits ?? '') === String(change.limits ?? '');
    return store.config.write(isSame ? { ...call, managed: null } : call, level, change);
  };
  return { ...store, config: { ...store.config, write } };
}

function markingBlindly(): Backend {
  const store = memory();
  const mark: Backend['managed']['mark'] = (call, { key, value }) => store.managed.mark(call, { key, value });
  return { ...store, managed: { ...store.managed, mark } };
}

function markingFirst(): Backend {
  const store = memory();
  const update: Backend['entities']['update'] = (call, ...rest) => {
    if (call.managed) void store.managed.mark(call, call.managed);
    return store.entities.update(call, ...rest);
  };
  return { ...store, entities: { ...store.entities, update } };
}

function reading(change: <T>(found: readonly T[]) => readonly T[]): Backend {
  const store = memory();
  const readMany: Backend['entities']['readMany'] = async (...args) => change(await store.entities.readMany(...args));
  return { ...store, entities: { ...store.entities, readMany } };
}
