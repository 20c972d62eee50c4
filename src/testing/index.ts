/** Tools for testing code that uses Headgate. Imports no test runner. */
export { type FakeClock, fakeClock } from './fake-clock.js';
export { type Outage, outage, type OutageMode } from './outage.js';
