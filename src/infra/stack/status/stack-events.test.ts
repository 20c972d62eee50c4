import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { StackEvent } from '../stack-tools.js';
import { causesFirst, eventsAfter, lastOperation, rootCause } from './stack-events.js';

let made = 0;

function event(status: string, parts: Partial<StackEvent> = {}): StackEvent {
  made += 1;
  const plain = { id: `e${made}`, at: new Date(made), logicalId: 'Table', physicalId: null };
  return { ...plain, type: 'AWS::DynamoDB::Table', reason: null, ofStack: false, status, ...parts };
}

const ofStack = (status: string, reason: string | null = null): StackEvent =>
  event(status, { logicalId: 'headgate', type: 'AWS::CloudFormation::Stack', ofStack: true, reason });

/** In CloudFormation's order: the newest event first. */
const newestFirst = (events: readonly StackEvent[]): readonly StackEvent[] => events.toReversed();

const ROLLED_BACK = [
  ofStack('UPDATE_IN_PROGRESS', 'User Initiated'),
  event('UPDATE_FAILED', { logicalId: 'StreamFunction', reason: 'Resource update cancelled' }),
  event('CREATE_FAILED', { logicalId: 'Dashboard', reason: 'Rate exceeded' }),
  event('CREATE_FAILED', { logicalId: 'AlarmTopic', reason: 'Resource creation cancelled' }),
  ofStack('UPDATE_ROLLBACK_IN_PROGRESS', 'The following resource(s) failed to create: [Dashboard].'),
  ofStack('UPDATE_ROLLBACK_COMPLETE'),
];

describe('the root cause', () => {
  test('the root cause is the first failure that is not a consequence', () => {
    expect(rootCause(ROLLED_BACK)).toMatchObject({ logicalId: 'Dashboard', reason: 'Rate exceeded' });
  });

  test('any number of cancelled resources in any place does not change the root cause', () => {
    const cancelled = fc.constantFrom(
      'Resource creation cancelled',
      'Resource creation Cancelled',
      'Resource update cancelled',
    );
    const places = fc.array(fc.record({ at: fc.nat(ROLLED_BACK.length), reason: cancelled }), { maxLength: 8 });
    fc.assert(
      fc.property(places, (extra) => {
        const events = [...ROLLED_BACK];
        for (const { at, reason } of extra) events.splice(at, 0, event('CREATE_FAILED', { logicalId: 'X', reason }));
        expect(rootCause(events)?.logicalId).toBe('Dashboard');
      }),
    );
  });

  test('the root cause is the reason of the stack when no resource gives one', () => {
    const events = [ofStack('CREATE_IN_PROGRESS'), ofStack('ROLLBACK_IN_PROGRESS', 'Transform failed')];
    expect(rootCause(events)).toEqual({ logicalId: null, type: null, reason: 'Transform failed' });
  });

  test('there is no root cause when nothing failed', () => {
    expect(rootCause([ofStack('CREATE_IN_PROGRESS', 'User Initiated'), ofStack('CREATE_COMPLETE')])).toBeNull();
  });

  test('the root cause comes before all other failures, and each resource appears once', () => {
    expect(causesFirst(ROLLED_BACK, null).map(({ logicalId }) => logicalId)).toEqual([
      'Dashboard',
      'StreamFunction',
      'AlarmTopic',
    ]);
    expect(causesFirst([], 'the reason of the stack')).toMatchObject([{ reason: 'the reason of the stack' }]);
    expect(causesFirst([], null)).toEqual([]);
  });
});

describe('the last operation', () => {
  test('the last operation starts at its newest start event and includes its roll-back', () => {
    const before = [ofStack('CREATE_IN_PROGRESS'), event('CREATE_COMPLETE'), ofStack('CREATE_COMPLETE')];
    expect(lastOperation(newestFirst([...before, ...ROLLED_BACK]))).toEqual(ROLLED_BACK);
  });

  test('an event of a resource does not start an operation', () => {
    const events = [ofStack('DELETE_IN_PROGRESS'), event('DELETE_IN_PROGRESS'), event('DELETE_FAILED')];
    expect(lastOperation(newestFirst(events))).toEqual(events);
  });
});

test('polling reports every event once, in order, however often it polls', () => {
  const log = Array.from({ length: 12 }, () => event('CREATE_COMPLETE'));
  fc.assert(
    fc.property(fc.array(fc.nat(log.length), { maxLength: 10 }), fc.nat(3), (looks, before) => {
      let lastId = log.slice(0, before).at(-1)?.id ?? null;
      const seen: StackEvent[] = [];
      for (const until of [...looks.map((at) => Math.max(at, before)).toSorted((a, b) => a - b), log.length]) {
        const events = newestFirst(log.slice(0, until));
        seen.push(...eventsAfter(events, lastId));
        lastId = events[0]?.id ?? lastId;
      }
      expect(seen).toEqual(log.slice(before));
    }),
  );
});
