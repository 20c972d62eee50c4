/** Reads lines of an id and a command line, as `ps` prints them. */
export function parseList(text: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const line of text.split('\n')) {
    const { pid = '', command = '' } = /^\s*(?<pid>\d+)\s+(?<command>\S.*)$/.exec(line)?.groups ?? {};
    if (command !== '') found.set(Number(pid), normalise(command));
  }
  return found;
}

/** Windows lists the quotes of a command line, other systems only its words. */
export function normalise(line: string): string {
  return line.replaceAll('"', '').trim();
}

/** Whether a command line of the list ends with these arguments. */
export function hasArguments(line: string | undefined, args: readonly string[]): boolean {
  return line?.endsWith(` ${normalise(args.join(' '))}`) ?? false;
}
