/** How many: as many as was promised only where somebody asks for it. */
export function sized(few: number, full: number): number {
  return process.env['HEADGATE_FULL'] === '1' ? full : few;
}
