import assert from 'node:assert/strict';
import { describe, expect, test } from 'vitest';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { TOPICS } from '../../src/testing/conformance/kit/topics.js';
import { openClientFixture } from '../support/server/client-fixture.js';

/** Topics whose cases decide: they run through `headgate/client` and a server on memory. */
const RUN: readonly string[] = [
  'takes',
  'names',
  'waits',
  'leases',
  'slots',
  'expiry',
  'cascade',
  'concurrency',
  'config changes',
  'per-call limits',
  'unlimited limits',
  'charges',
  'pause',
  'pause of entities',
  'priority',
  'priority of concurrent asks',
  'shadow',
  'bypass',
  'near',
  'at most',
  'at most in cascades',
  'status',
  'run',
  'random sequences',
  'portable leases',
  'many at once',
];

const ABOUT_RECORDS =
  'it is about records that the client neither reads nor writes; the server has operations for them';

/** Topics that do not run through the client. */
const NOT_RUN: Readonly<Record<string, string>> = {
  port: 'it calls the port of a store, without a limiter',
  config: ABOUT_RECORDS,
  'config shapes': ABOUT_RECORDS,
  'pause records': ABOUT_RECORDS,
  namespaces: ABOUT_RECORDS,
  entities: ABOUT_RECORDS,
  usage: ABOUT_RECORDS,
  'entity records': ABOUT_RECORDS,
  'entity parents': ABOUT_RECORDS,
  'entity lists': ABOUT_RECORDS,
  'namespace deletion': ABOUT_RECORDS,
  'namespace purge': ABOUT_RECORDS,
  'audit records': ABOUT_RECORDS,
  'audit lists': ABOUT_RECORDS,
  'usage counts': ABOUT_RECORDS,
  'usage queries': ABOUT_RECORDS,
  buckets: ABOUT_RECORDS,
  'bucket resets': ABOUT_RECORDS,
  capacity: ABOUT_RECORDS,
  'lease lists': ABOUT_RECORDS,
  'managed marks': ABOUT_RECORDS,
};

/**
 * Over HTTP only a portable lease can be corrected, so the asks of all cases are portable unless they say otherwise, except
 * in these: they count holders, and a portable lease has one for rates too.
 */
const ASKED_AS_WRITTEN: ReadonlySet<string> = new Set([
  'an ask that a rate refuses takes no slot',
  'an ask for 0 slots creates no holder',
  'an acquire that has enough slots does not reclaim expired holders',
  'an operation id that is empty, too long or has other characters is refused, and so is any of a lease that is not portable',
  'a denied ask for a portable lease leaves no holder at any level',
  'a bucket with 1,000 holders denies a lease that no slot bounds as contended, reports it, and has room after a commit or an expiry',
  'the leases of a namespace are listed over all entities, in pages, without those of other namespaces',
]);

const HOLDER_STAYS = 'slots over HTTP have a portable lease, whose holder stays after a release until the lease ends';
const HOLDER_OF_RATES = 'a lease that can be corrected over HTTP has a holder, also for rates';
const NO_EXPIRY = 'a lease of the client does not follow its expiry, because its clock is not that of the store';
const TOKEN_IS_A_FIELD = 'the token of a lease of the client is a field, so that reading it cannot hand the lease over';

/** Cases of the topics above that the API cannot express. */
const NOT_EXPRESSED: Readonly<Record<string, string>> = {
  'adjust gives back at most what was taken':
    'an adjust of a portable lease gives back what was taken and no more, instead of refusing',
  'release gives the slots back and leaves the lease open for settle and rollback': HOLDER_STAYS,
  'a lease without a holder has no expiry, and a lease with a holder has one from its start': HOLDER_OF_RATES,
  'a list of leases shows each holder with its slots, its start and its expiry': HOLDER_OF_RATES,
  'a holder is no longer listed after its slots were given back by any method': HOLDER_STAYS,
  'a late extend keeps the lease if its slot was not reclaimed yet': NO_EXPIRY,
  'an extend after the slot was reclaimed throws, and aborts the signal': NO_EXPIRY,
  'the signal aborts at the expiry, unless the lease was extended or ended': NO_EXPIRY,
  'a settlement after the holder was reclaimed corrects what stayed taken': NO_EXPIRY,
  'leaseTtlMs creates a holder also without slots': HOLDER_OF_RATES,
  'onExpiry refund gives nothing back for a lease that ended in time': HOLDER_STAYS,
  'a settlement after a refunded expiry was reclaimed charges once and may cause debt':
    'the holder is gone, so that no request knows of an earlier settlement (decision 32)',
  'a release of slots whose limit was lifted meanwhile gives nothing to it': HOLDER_STAYS,
  '500 random operations on slots have the results of a plain list of holders': HOLDER_STAYS,
  'run extends its lease while its function runs':
    'the client extends by the timers of its runtime; src/client/client.test.ts shows it',
  'a commit after the rollback of another process is refused as lease.closed and charges nothing':
    'a refusal does not tell the client how another process ended the lease',
  'the end of a scope leaves a lease open whose token was taken': TOKEN_IS_A_FIELD,
  'run leaves a lease whose token was taken open, and rolls it back if the function throws': TOKEN_IS_A_FIELD,
  'a token needs a secret and a portable lease': 'a server does not start without a secret',
};

describe('through the client and a server on memory', () => {
  for (const topic of RUN) {
    describe(topic, () => {
      for (const { title, run } of TOPICS[topic] ?? []) {
        const reason = NOT_EXPRESSED[title];
        const body = async (): Promise<void> => {
          const asks = ASKED_AS_WRITTEN.has(title) ? 'as written' : 'portable';
          const fixture = await openClientFixture(fakeClock(), asks);
          await run(fixture);
          assert.deepEqual(fixture.reported, [], 'failures that no caller awaited');
        };
        if (reason === undefined) test(title, body);
        else test.skip(`${title} (skipped: ${reason})`, body);
      }
    });
  }
});

test('every topic of the suite either runs through the client or is listed with the reason why not', () => {
  expect([...RUN, ...Object.keys(NOT_RUN)].toSorted()).toEqual(Object.keys(TOPICS).toSorted());
});

test('every case that is listed exists in a topic that runs', () => {
  const titles = new Set(RUN.flatMap((topic) => TOPICS[topic] ?? []).map(({ title }) => title));
  const listed = [...Object.keys(NOT_EXPRESSED), ...ASKED_AS_WRITTEN];
  expect(listed.filter((title) => !titles.has(title))).toEqual([]);
});
