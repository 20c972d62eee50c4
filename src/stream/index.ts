export type { Archive } from './archive.js';
export type { Poison } from './decode.js';
export { folderArchive } from './folder-archive.js';
export {
  createStreamHandler,
  handler,
  type StreamEvent,
  type StreamHandlerOptions,
  type StreamResponse,
} from './lambda.js';
export { rebuildUsage, type RebuildOptions, type RebuildReport } from './rebuild.js';
export { s3Archive, type S3ArchiveOptions } from './s3-archive.js';
export { runWorker, type TrimmedStream, type WorkerOptions } from './worker.js';
export type { WorkerProgress } from './worker-progress.js';
