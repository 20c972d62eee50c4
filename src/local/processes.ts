import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { normalise, parseList } from './process-list.js';

const WINDOWS_LIST = 'Get-CimInstance Win32_Process | ForEach-Object { "$($_.ProcessId) $($_.CommandLine)" }';
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * The command lines of the visible processes by id. A command line distinguishes a process from a later one with the
 * same id. A process that has ended but was not reaped yet has no command line, and is not listed.
 */
export function listProcesses(): ReadonlyMap<number, string> {
  if (process.platform === 'linux') return fromProc();
  const windows = process.platform === 'win32';
  const [command, args] = windows
    ? ['powershell', ['-NoProfile', '-Command', WINDOWS_LIST]]
    : ['ps', ['-axww', '-o', 'pid=,args=']];
  return parseList(execFileSync(command, args, { encoding: 'utf8', maxBuffer: MAX_BYTES, windowsHide: true }));
}

function fromProc(): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const line = commandLineOf(name);
    if (line !== '') found.set(Number(name), line);
  }
  return found;
}

function commandLineOf(pid: string): string {
  try {
    return normalise(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '));
  } catch {
    // The process has ended since the folder was listed.
    return '';
  }
}
