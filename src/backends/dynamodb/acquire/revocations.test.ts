import { expect, test } from 'vitest';
import { Revocations } from './revocations.js';

const atOnce = () => 0;
const failing = async (): Promise<void> => {
  throw new Error('out');
};

test('a revocation is retried until it succeeds, and then nothing is reported', async () => {
  const reported: unknown[] = [];
  const revocations = new Revocations(atOnce);
  let attempts = 0;
  const done = new Promise<void>((resolve) => {
    const revoke = async (): Promise<void> => {
      if ((attempts += 1) < 4) return failing();
      resolve();
    };
    revocations.add(revoke, (error) => reported.push(error));
  });
  await done;
  await revocations.finish();
  expect({ attempts, reported }).toEqual({ attempts: 4, reported: [] });
});

test('a revocation that never succeeds is reported once, after ten attempts', async () => {
  const revocations = new Revocations(atOnce);
  let attempts = 0;
  const error = await new Promise((report) => {
    const revoke = async (): Promise<void> => {
      attempts += 1;
      return failing();
    };
    revocations.add(revoke, report);
  });
  expect({ attempts, error }).toMatchObject({ attempts: 10, error: { message: 'out' } });
});

test('finishing retries each waiting revocation once, without its wait', async () => {
  const revocations = new Revocations(() => 1);
  let attempts = 0;
  const reported: unknown[] = [];
  const revoke = async (): Promise<void> => {
    attempts += 1;
    return failing();
  };
  revocations.add(revoke, (error) => reported.push(error));
  await revocations.finish();
  expect({ attempts, reports: reported.length }).toEqual({ attempts: 2, reports: 1 });
});

test('revocations beyond 1,000 at a time are reported at once, and not tried', async () => {
  const revocations = new Revocations(() => 1);
  const reported: unknown[] = [];
  let attempts = 0;
  const revoke = async (): Promise<void> => {
    attempts += 1;
    return new Promise(() => {});
  };
  for (let grant = 0; grant < 1_002; grant++) revocations.add(revoke, (error) => reported.push(error));
  expect(attempts).toBe(1_000);
  expect(reported).toMatchObject([{ code: 'backend.unavailable' }, { code: 'backend.unavailable' }]);
});
