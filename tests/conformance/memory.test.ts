import { describe, test } from 'vitest';
import { memory } from '../../src/index.js';
import { describeBackend } from '../../src/testing/backend.js';

describeBackend('memory', { describe, test, create: () => memory() });
