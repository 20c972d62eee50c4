import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Installs the packages of this folder, unless they were installed after the last change of the lockfile. */
const timeOf = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;

if (timeOf('node_modules/.package-lock.json') < timeOf('package-lock.json')) {
  execFileSync('npm', ['ci', '--silent', '--no-audit', '--no-fund'], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
}
