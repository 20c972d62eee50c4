import type { Case } from './bench.js';
import { cascade } from './cascade.js';
import { concurrency } from './concurrency.js';
import { configChanges } from './config-changes.js';
import { configShapes } from './config-shapes.js';
import { config } from './config.js';
import { entities } from './entities.js';
import { expiry } from './expiry.js';
import { leases } from './leases.js';
import { model } from './model.js';
import { names } from './names.js';
import { namespaces } from './namespaces.js';
import { ownLimits } from './own-limits.js';
import { port } from './port.js';
import { run } from './run.js';
import { slots } from './slots.js';
import { status } from './status.js';
import { takes } from './takes.js';
import { usage } from './usage.js';
import { waits } from './waits.js';

/** Every case, by what it is about. */
export const TOPICS: Readonly<Record<string, readonly Case[]>> = {
  takes,
  names,
  waits,
  leases,
  slots,
  expiry,
  cascade,
  concurrency,
  config,
  'config changes': configChanges,
  'config shapes': configShapes,
  'per-call limits': ownLimits,
  namespaces,
  entities,
  status,
  usage,
  run,
  port,
  'random sequences': model,
};
