import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { refusals } from './conditions.js';
import { type Budgets, measureEntries, overBudget } from './entry-sizes.js';
import { bundledIn, sbomOfPackage } from './sbom.js';

/** `npm run release -- [--dry-run [--skip-tests]]`. Run from the folder of the project. */
const { values: flags } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false }, 'skip-tests': { type: 'boolean', default: false } },
});
const isDryRun = flags['dry-run'];
const OUT = join('.tmp', 'release');
/** On Windows npm is a script, which only a shell starts. */
const shell = process.platform === 'win32';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly repository?: unknown;
}

const { name, version, repository } = JSON.parse(readText('package.json')) as Manifest;
if (flags['skip-tests'] && !isDryRun) fail('Only a dry run may skip the tests.');

step(`1. Conditions of a release of ${name} ${version}`);
const reasons = refusals({
  version,
  repository,
  changelog: readText('CHANGELOG.md'),
  branch: output('git', ['branch', '--show-current']).trim(),
  changes: output('git', ['status', '--porcelain']).trim(),
  env: process.env,
});
for (const reason of reasons) say(`  not met: ${reason}`);
if (reasons.length > 0 && !isDryRun) fail('Nothing was published.');

step('2. Checks and tests');
if (flags['skip-tests']) say('  SKIPPED by --skip-tests: a release runs them.');
else for (const script of ['check', 'test', 'test:chaos', 'docs:check', 'docs']) run('npm', ['run', script]);

step('3. Licences of what is bundled');
run('npx', ['vitest', 'run', 'tests/licenses.test.ts']);

step('4. Build and pack');
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
run('npm', ['run', '--silent', 'build']);
const packing = output('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', OUT]);
const [packed] = JSON.parse(packing) as [{ filename: string; size: number }];
const tarball = join(OUT, packed.filename);

step('5. Sizes');
const entries = measureEntries('.');
for (const [entry, bytes] of Object.entries(entries)) say(`  ${entry.padEnd(20)} ${bytes} bytes gzip`);
say(`  ${packed.filename.padEnd(20)} ${packed.size} bytes`);
const excess = overBudget(JSON.parse(readText('tools/release/budgets.json')) as Budgets, packed.size, entries);
if (excess.length > 0) fail(`Over budget: ${excess.join('; ')}.`);

step('6. SBOM');
const listing = JSON.parse(output('npm', ['sbom', '--sbom-format', 'cyclonedx'])) as Parameters<
  typeof sbomOfPackage
>[0];
const sbom = sbomOfPackage(listing, bundledIn(readText('THIRD-PARTY-LICENSES.txt')), name);
const sbomFile = join(OUT, `${name}-${version}.cdx.json`);
writeFileSync(sbomFile, `${JSON.stringify(sbom, null, 2)}\n`);
say(`  ${sbomFile}: ${sbom.components.length} bundled packages`);

step(isDryRun ? '7. Publish (dry run)' : '7. Publish');
// npm makes the provenance statement only in a CI with OIDC; a dry run makes none.
run('npm', ['publish', tarball, '--access', 'public', '--provenance', ...(isDryRun ? ['--dry-run'] : [])]);
if (reasons.length > 0) say(`\nDry run complete. A release now would be refused for ${reasons.length} reasons: see 1.`);
else
  say(
    isDryRun ? '\nDry run complete: a release would be published.' : `\nPublished. Attach ${sbomFile} to the release.`,
  );

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

function step(title: string): void {
  say(`\n${title}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function fail(message: string): never {
  process.stderr.write(`\n${message}\n`);
  process.exit(1);
}

function run(command: string, args: readonly string[]): void {
  try {
    execFileSync(command, args, { stdio: 'inherit', shell });
  } catch {
    fail(`\`${command} ${args.join(' ')}\` failed. Nothing was published.`);
  }
}

function output(command: string, args: readonly string[]): string {
  return execFileSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 100_000_000,
    shell,
  });
}
