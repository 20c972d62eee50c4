export type { Archive } from './archive/archive.js';
export type { Poison } from './decode.js';
export { folderArchive } from './archive/folder-archive.js';
export {
  createStreamHandler,
  handler,
  type StreamEvent,
  type StreamHandlerOptions,
  type StreamResponse,
} from './lambda.js';
export { rebuildUsage, type RebuildOptions, type RebuildReport } from './rebuild/rebuild.js';
export { s3Archive, type S3ArchiveOptions } from './archive/s3-archive.js';
export type { TrimmedStream, WorkerOptions } from './worker/worker-options.js';
export { runWorker } from './worker/worker.js';
export type { WorkerProgress } from './worker/worker-progress.js';
