import type { Operation } from '../operation.js';
import { configOperations } from './config.js';
import { decideOperations } from './decide.js';
import { entityOperations } from './entities.js';
import { inspectOperations } from './inspect.js';
import { leaseOperations } from './leases.js';
import { limitsFileOperations } from './limits-file.js';
import { liveOperations } from './live.js';
import { namespaceOperations } from './namespaces.js';
import { sessionOperations } from './session.js';
import { spendingOperations } from './spending.js';

/** Every operation of the API. Routes, the OpenAPI document and the access tests are made from this table. */
export const OPERATIONS: readonly Operation[] = [
  ...decideOperations,
  ...leaseOperations,
  ...spendingOperations,
  ...entityOperations,
  ...configOperations,
  ...inspectOperations,
  ...namespaceOperations,
  ...limitsFileOperations,
  ...liveOperations,
  ...sessionOperations,
];
