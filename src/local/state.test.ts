import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { localFolder, type LocalState, readLocalState, removeLocalState, writeLocalState } from './state.js';

const STATE: LocalState = {
  engine: 'dynoxide',
  port: 8000,
  data: '/data/a.db',
  args: ['serve', '--port', '8000'],
  pid: null,
  startedAt: '2027-01-15T10:00:00.000Z',
};

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('readState returns what writeState wrote, and no draft stays in the folder', () => {
  expect(readLocalState(folder)).toBeNull();
  writeLocalState(folder, { ...STATE, pid: 1 });
  writeLocalState(folder, STATE);
  expect(readLocalState(folder)).toEqual(STATE);
  expect(readdirSync(folder)).toEqual(['local.json']);
  removeLocalState(folder);
  expect(readLocalState(folder)).toBeNull();
});

test.each(['', '{', '{}', 'null', JSON.stringify({ ...STATE, pid: 'x' }), JSON.stringify({ ...STATE, args: [] })])(
  'readState refuses a file with the content %j, and names the file',
  (text) => {
    writeFileSync(join(folder, 'local.json'), text);
    expect(() => readLocalState(folder)).toThrow(/local\.json cannot be read \(.+\): remove it$/);
  },
);

test.skipIf(process.platform === 'win32')(
  'localFolder is in the home of the user unless a variable names another folder',
  () => {
    expect(localFolder({})).toBe(join(homedir(), '.local/state/headgate'));
    expect(localFolder({ XDG_STATE_HOME: '/state' })).toBe('/state/headgate');
    expect(localFolder({ XDG_STATE_HOME: '/state', HEADGATE_LOCAL_DIR: '/mine' })).toBe('/mine');
    expect(localFolder({ HEADGATE_LOCAL_DIR: 'here' })).toBe(join(process.cwd(), 'here'));
  },
);
