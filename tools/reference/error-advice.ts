import type { ERRORS } from '../../src/core/error-codes.js';

interface Advice {
  /** The class that the library throws. null: only the server answers with the code. */
  readonly thrown: string | null;
  readonly meaning: string;
  readonly advice: string;
}

/** What each code means and what to do about it. The compiler requires a row for every code. */
export const ADVICE: Readonly<Record<keyof typeof ERRORS, Advice>> = {
  'limit.exceeded': {
    thrown: 'RateLimitExceeded',
    meaning: 'A limit refused the ask, or a pause with an end did.',
    advice: 'Wait for `retryAfterMs`, or pass `wait`.',
  },
  'limit.impossible': {
    thrown: 'RateLimitExceeded',
    meaning: 'The ask is larger than the capacity of a limit.',
    advice: 'Ask for less, or raise the `burst`. A retry does not help.',
  },
  'entity.paused': {
    thrown: 'RateLimitExceeded',
    meaning: 'The entity or its bucket is paused without an end.',
    advice: 'An operator ends the pause: `headgate resume`.',
  },
  'input.invalid': {
    thrown: 'ValidationError',
    meaning: 'An argument was refused. Nothing was written.',
    advice: 'Correct the field that the message names.',
  },
  'limits.missing': {
    thrown: 'LimitsNotConfigured',
    meaning: 'No level has limits for the entity and the resource.',
    advice: 'Store limits for the system or the resource, or pass `limits`.',
  },
  'lease.closed': {
    thrown: 'LeaseClosed',
    meaning: 'The lease was committed, rolled back or lost before the call.',
    advice: 'End a lease once. Extend leases of long work, or use `run`, which does.',
  },
  'lease.token-invalid': {
    thrown: 'LeaseTokenInvalid',
    meaning: 'The text is no lease token of this namespace, or another secret signed it.',
    advice: 'Use the same `HEADGATE_LEASE_SECRET` in all processes.',
  },
  'entity.missing': { thrown: 'EntityNotFound', meaning: 'The entity has no record.', advice: 'Create it first.' },
  'entity.exists': {
    thrown: 'EntityExists',
    meaning: 'The entity has a record already.',
    advice: 'Update it instead.',
  },
  'entity.conflict': {
    thrown: 'VersionConflict',
    meaning: 'Another writer changed the entity first.',
    advice: 'Read it again, then repeat the change.',
  },
  'namespace.missing': {
    thrown: 'NamespaceNotFound',
    meaning: 'The namespace is not registered, or is deleted.',
    advice: 'Correct the name, or register it: `headgate namespace create`.',
  },
  'namespace.conflict': {
    thrown: 'NamespaceConflict',
    meaning: 'The namespace is not in the state that the change needs.',
    advice: 'The message says in which state it is.',
  },
  'schema.mismatch': {
    thrown: 'SchemaMismatch',
    meaning: 'Another version of Headgate wrote the store, or the table does not exist, or has no version record.',
    advice: 'Run the command that the message names. See [upgrading](../operate/upgrade.md).',
  },
  'backend.unavailable': {
    thrown: 'BackendUnavailable',
    meaning: 'The store did not answer in time, or the limiter is closed.',
    advice: 'Retry later. `onUnavailable` decides what asks do meanwhile: see [outages](../guide/outages.md).',
  },
  'backend.denied': {
    thrown: 'AccessDenied',
    meaning: 'The store refused the credentials or the permissions.',
    advice: 'See [permissions](../operate/iam.md).',
  },
  'access.missing': {
    thrown: null,
    meaning: 'The request has no token, or an unknown one.',
    advice: 'Send `authorization: Bearer hg_...`.',
  },
  'access.denied': {
    thrown: null,
    meaning: 'The token does not cover the operation, the namespace or the entity.',
    advice: 'Use a token of the role that [the operation](http.md) needs.',
  },
  'route.missing': { thrown: null, meaning: 'There is no such path.', advice: 'See [the HTTP API](http.md).' },
  'route.method': {
    thrown: null,
    meaning: 'The path has other methods, which `Allow` lists.',
    advice: 'See [the HTTP API](http.md).',
  },
  'body.too-large': { thrown: null, meaning: 'The body of the request is too large.', advice: 'Send less at once.' },
  'server.busy': {
    thrown: null,
    meaning: 'As many calls wait at the server as may (`--max-waiting`), or as many event streams are open as may.',
    advice: 'Ask without `wait`, or later.',
  },
  'server.error': { thrown: null, meaning: 'The server failed.', advice: 'The log of the server has the cause.' },
};

/** Codes of `InfrastructureError`: what is around the limiter is missing or failed. */
export const INFRASTRUCTURE: Readonly<Record<string, string>> = {
  archive: 'Audit records cannot be archived to the bucket or the folder.',
  'change-set-failed': 'CloudFormation refused the change of a stack. The message has its reason.',
  clock: 'The clock of this machine differs too much from that of the store. Correct it.',
  'code-failed': 'The code of a Lambda function could not be uploaded, or another upload replaced it.',
  'code-missing': 'The installed package lacks a file. Install it again.',
  'data-loss': 'The change of a stack would delete or replace its table, and was not made.',
  dynamodb: 'DynamoDB answered with an error that is no outage. The message has its name.',
  'engine-unavailable': 'No DynamoDB engine for tests and development is installed. The message has the command.',
  file: 'A file cannot be read, written or opened as a store.',
  'function-missing': 'The stack has no such Lambda function.',
  'local-busy': 'Another `headgate local` command runs.',
  'local-start': 'The local engine did not start.',
  'local-state': 'The file that describes the local engine cannot be read. Remove it.',
  'local-stop': 'The local engine does not stop.',
  migration: 'A migration found records that it cannot move, or an old client that still writes.',
  'missing-peer': 'An optional package is not installed. The message has the command.',
  'port-taken': 'Another program listens on the port.',
  refused: 'AWS refused a request of a stack command. The message has its reason.',
  'stack-failed': 'CloudFormation could not change the stack. The message has the resources that failed.',
  'stack-foreign': 'Headgate did not create the stack, or the stack does not belong to this environment.',
  'stack-missing': 'There is no such stack.',
  'still-running': 'AWS needs longer than the command waits. Repeat the command.',
  'stream-missing': 'The table has no stream of new and old images: usage cannot be counted.',
  'stream-trimmed':
    'The stream no longer has a record, because the worker was stopped too long: `headgate usage rebuild`.',
  'table-differs': 'The table cannot be adopted as it is. The message lists the differences.',
  'table-exists': 'A table with that name exists outside the stack: `headgate deploy --adopt`.',
  'table-missing': 'There is no such table: `headgate deploy`, or `createTable` in tests.',
  'template-too-large': 'The template is larger than CloudFormation accepts.',
  upgrading: 'A feature starts to work 150 seconds after the upgrade of the table. Retry then.',
};
