import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';
import { ROOT } from './entries.js';

/** The model that TypeDoc makes of the public exports: one module for each entry. */
export async function convert(entries) {
  const root = fileURLToPath(ROOT);
  const app = await Application.bootstrap({
    entryPoints: entries.map(({ source }) => root + source),
    tsconfig: `${root}tsconfig.build.json`,
    basePath: root,
    sort: ['source-order'],
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    // `npm run check` compiles the sources with the compiler of the project.
    skipErrorChecking: true,
    validation: { notExported: false, invalidLink: true, notDocumented: false },
    logLevel: 'Warn',
  });
  const project = await app.convert();
  if (project === undefined || app.logger.hasErrors()) throw new Error('TypeDoc could not read the sources');
  return project;
}
