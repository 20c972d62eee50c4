/** An ask may name one limit of which it takes at most an amount: it is cut to what there is, at least to one token. */
import { type Amount, askOf, type AskedAmount, type Holder, refuses, type Verdict } from './decide.js';
import { MILLI } from '../units.js';

/** What an ask takes from one level, and the holder that it brings. */
interface Asked {
  readonly asks: readonly AskedAmount[];
  readonly holder: Holder | null;
}

/** The level with this amount of one limit, which is not cut any more. */
export function withAmount<Level extends Asked>(level: Level, name: string, milli: number): Level {
  if (askOf(level.asks, name) === undefined) return level;
  const asks = level.asks.map((ask) => {
    if (ask.name !== name) return ask;
    const { atMost: _, ...whole } = ask;
    return { ...whole, milli };
  });
  return { ...level, asks, holder: level.holder && holderWith(level.holder, { name, milli }) };
}

/** The holder, if it carries this amount of the limit instead of its own. */
export function holderWith(holder: Holder, { name, milli }: Amount): Holder {
  const withIt = (amounts: readonly Amount[]): readonly Amount[] =>
    amounts.map((amount) => (amount.name === name ? { name, milli } : amount));
  const { slots, rates, portable } = holder;
  return {
    ...holder,
    slots: withIt(slots),
    rates: rates && withIt(rates),
    ...(portable === undefined ? {} : { portable: { ...portable, taken: withIt(portable.taken) } }),
  };
}

/** The level with the amounts that a plan has chosen: every later plan of the same ask takes the same. */
export function asPlanned<Level extends Asked>(level: Level, verdicts: readonly Verdict[]): Level {
  const cut = verdicts.find((verdict) => verdict.cut === true);
  return cut === undefined ? level : withAmount(level, cut.limit.name, cut.requestedMilli);
}

/**
 * What all levels can give of the limit: the least of what they would be cut to. A level where the limit is a shadow or
 * unlimited does not cut. null: none does.
 */
export function leastOf(answers: readonly { readonly verdicts: readonly Verdict[] }[]): number | null {
  let least: number | null = null;
  for (const { verdicts } of answers) {
    for (const verdict of verdicts) {
      if (verdict.cut !== true) continue;
      least = least === null ? verdict.requestedMilli : Math.min(least, verdict.requestedMilli);
    }
  }
  return least;
}

/** The verdict with less of a limit that may be cut, so that `keepMilli` stay; the same if less than a token would be left. */
export function cutToKeep(verdict: Verdict, keepMilli: number): Verdict {
  const { cut, effectiveMilli, requestedMilli, reserveMilli = 0 } = verdict;
  if (cut !== true || keepMilli <= reserveMilli || refuses(verdict)) return verdict;
  const roomMilli = Math.floor((Number(effectiveMilli) - keepMilli) / MILLI) * MILLI;
  return roomMilli < MILLI || roomMilli >= requestedMilli ? verdict : { ...verdict, requestedMilli: roomMilli };
}
