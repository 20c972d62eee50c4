import assert from 'node:assert/strict';
import type { Awaitable, Backend } from '../backend.js';
import { type Case, openFixture } from './conformance/kit/fixture.js';
import { askInGroups } from './conformance/kit/in-groups.js';
import { DECIDING, TOPICS } from './conformance/kit/topics.js';
import { type FakeClock, fakeClock } from './fake-clock.js';

/** The parts of a test runner that the suite needs. vitest, node:test, jest and mocha have them. */
export interface BackendSuite {
  readonly describe: (title: string, body: () => void) => unknown;
  readonly test: {
    (title: string, body: () => Promise<void>): unknown;
    readonly skip: (title: string, body: () => Promise<void>) => unknown;
  };
  /** Returns a new store for each case, or the same one: every case uses its own namespace. */
  readonly create: (clock: FakeClock) => Awaitable<Backend>;
  /** Called after each case, with the store that `create` returned for it. */
  readonly dispose?: (backend: Backend) => Awaitable<void>;
  /** For stores that update usage or indexes in the background: resolves when everything written can be read. */
  readonly catchUp?: (backend: Backend) => Awaitable<void>;
  /** Cases that this store cannot pass, with the reason. An unknown title is refused. */
  readonly skip?: readonly SkippedCase[];
  /**
   * Runs the cases about decisions a second time, each ask in a group with other asks. false: this store does not answer
   * the asks of one process in the order in which they were made.
   */
  readonly inGroups?: boolean;
}

/** A case that a store cannot pass. */
export interface SkippedCase {
  readonly title: string;
  readonly reason: string;
}

/** Registers the conformance suite for a store. Every backend must give the same answers to the same calls. */
export function describeBackend(name: string, suite: BackendSuite): void {
  const reasons = new Map(suite.skip?.map(({ title, reason }) => [title, reason]));
  refuseUnknownTitles([...reasons.keys()]);
  suite.describe(name, () => {
    for (const [topic, cases] of Object.entries(TOPICS)) {
      suite.describe(topic, () => {
        for (const { title, run } of cases) register(suite, title, async () => runCase(suite, run), reasons.get(title));
      });
      if (suite.inGroups === false || !DECIDING.has(topic)) continue;
      suite.describe(`${topic}, asked in groups`, () => {
        for (const { title, run, alone } of cases) {
          if (alone !== undefined) continue;
          const body = async (): Promise<void> => runCase(suite, run, askInGroups);
          register(suite, `${title}, asked in a group`, body, reasons.get(title));
        }
      });
    }
  });
}

function register(suite: BackendSuite, title: string, body: () => Promise<void>, reason: string | undefined): void {
  if (reason === undefined) suite.test(title, body);
  else suite.test.skip(`${title} (skipped: ${reason})`, body);
}

async function runCase(
  suite: BackendSuite,
  run: Case['run'],
  reach: (store: Backend) => Backend = (store) => store,
): Promise<void> {
  const clock = fakeClock();
  const backend = await suite.create(clock);
  try {
    const fixture = await openFixture(reach(backend), clock, async () => suite.catchUp?.(backend));
    await run(fixture);
    assert.deepEqual(fixture.reported, [], 'failures that no caller awaited');
  } finally {
    await suite.dispose?.(backend);
  }
}

/** Without this check, a skip whose case was renamed would go unnoticed. */
function refuseUnknownTitles(skipped: readonly string[]): void {
  const titles = new Set(
    Object.values(TOPICS)
      .flat()
      .map(({ title }) => title),
  );
  const unknown = skipped.filter((title) => !titles.has(title));
  assert.deepEqual(unknown, [], 'titles to skip that no case has');
}
