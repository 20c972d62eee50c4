import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { StackEvent } from './cloudformation.js';
import { causesFirst, eventsAfter, lastOperation, rootCause } from './stack-events.js';

let made = 0;

function event(status: string, parts: Partial<StackEvent> = {}): StackEvent {
  made += 1;
  const plain = { id: `e${made}`, at: new Date(made), logicalId: 'Table', physicalId: null };
  return { ...plain, type: 'AWS::DynamoDB::Table', reason: null, ofStack: false, status, ...parts };
}

const ofStack = (status: string, reason: string | null = null): StackEvent =>
  event(status, { logicalId: 'headgate', type: 'AWS::CloudFormation::Stack', ofStack: true, reason });

/** As CloudFormation gives them: the last first. */
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
  test('is the first failure that was not a consequence', () => {
    expect(rootCause(ROLLED_BACK)).toMatchObject({ logicalId: 'Dashboard', reason: 'Rate exceeded' });
  });

  test('does not change with any number of cancelled resources, wherever they stand', () => {
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

  test('is what the stack says where no resource says anything', () => {
    const events = [ofStack('CREATE_IN_PROGRESS'), ofStack('ROLLBACK_IN_PROGRESS', 'Transform failed')];
    expect(rootCause(events)).toEqual({ logicalId: null, type: null, reason: 'Transform failed' });
  });

  test('is nothing where nothing failed', () => {
    expect(rootCause([ofStack('CREATE_IN_PROGRESS', 'User Initiated'), ofStack('CREATE_COMPLETE')])).toBeNull();
  });

  test('stands before all other failures, and each resource stands there once', () => {
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
  test('begins with the last beginning, and holds the roll-back that belongs to it', () => {
    const before = [ofStack('CREATE_IN_PROGRESS'), event('CREATE_COMPLETE'), ofStack('CREATE_COMPLETE')];
    expect(lastOperation(newestFirst([...before, ...ROLLED_BACK]))).toEqual(ROLLED_BACK);
  });

  test('is not begun by a resource', () => {
    const events = [ofStack('DELETE_IN_PROGRESS'), event('DELETE_IN_PROGRESS'), event('DELETE_FAILED')];
    expect(lastOperation(newestFirst(events))).toEqual(events);
  });
});

test('however often one looks, every event is told once, in order', () => {
  const log = Array.from({ length: 12 }, () => event('CREATE_COMPLETE'));
  fc.assert(
    fc.property(fc.array(fc.nat(log.length), { maxLength: 10 }), fc.nat(3), (looks, before) => {
      let told = log.slice(0, before).at(-1)?.id ?? null;
      const seen: StackEvent[] = [];
      for (const until of [...looks.map((at) => Math.max(at, before)).toSorted((a, b) => a - b), log.length]) {
        const events = newestFirst(log.slice(0, until));
        seen.push(...eventsAfter(events, told));
        told = events[0]?.id ?? told;
      }
      expect(seen).toEqual(log.slice(before));
    }),
  );
});
