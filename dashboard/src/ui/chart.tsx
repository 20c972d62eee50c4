import { useEffect, useRef, useState } from 'preact/hooks';
import type Plot from 'uplot';
import { formatCount, formatShort } from '../model/format.js';

/** The build puts uPlot before the page. */
declare const uPlot: typeof Plot;

export interface ChartSeries {
  readonly label: string;
  /** The name of a colour of the style sheet. */
  readonly colour: 'ok' | 'bad' | 'accent' | 'warn';
  /** null leaves a gap. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  /** What the chart shows, for readers who do not see it. */
  readonly label: string;
  /** Seconds since 1970, or positions. */
  readonly x: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly height: number;
  /** `bars`: one group of bars for each whole number of `x`. Default: lines. */
  readonly kind?: 'lines' | 'bars';
  readonly xText: (value: number) => string;
}

const dark = matchMedia('(prefers-color-scheme: dark)');

/**
 * A chart of lines or bars. It is drawn again when the theme or the width changes. The values at a point are shown while the
 * pointer is over it, or while the keyboard moves the point.
 */
export function Chart({ label, x, series, height, xText, kind = 'lines' }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const [point, setPoint] = useState<number | null>(null);
  const latest = useRef<Drawn>({ x, series, xText, kind, onPoint: setPoint });
  latest.current = { x, series, xText, kind, onPoint: setPoint };
  const shape = series.map(({ label: name, colour }) => `${name} ${colour}`).join('\n');
  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    // The engine may keep one destroyed chart for ever (its literals with getters are part of the shape of objects). A
    // chart therefore gets a node of its own, which is taken out of the page, and no other reference to the page.
    let holder: HTMLElement | null = null;
    const source: Source = { drawn: latest };
    const end = (): void => {
      plot.current?.destroy();
      plot.current = null;
      holder?.remove();
    };
    const make = (): void => {
      end();
      holder = target.appendChild(document.createElement('div'));
      const size = { width: target.clientWidth, height };
      plot.current = new uPlot(optionsOf(size, coloursOf(target), source), dataOf(latest.current), holder);
    };
    make();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height }));
    resized.observe(target);
    dark.addEventListener('change', make);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', make);
      end();
      source.drawn = null;
    };
  }, [shape, height]);
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [x, series]);
  const pointTo = (at: number): void => {
    const left = at < 0 ? -1 : plot.current?.valToPos(x[at] ?? 0, 'x');
    plot.current?.setCursor({ left: left ?? -1, top: 0 });
  };
  const last = x.length - 1;
  const at = point === null ? undefined : x[point];
  const texts = series.map((one) => `${one.label}${at === undefined ? '' : ` ${valueText(one.values[point ?? 0])}`}`);
  const where = at === undefined ? '' : xText(at);
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} style={{ height: `${height}px` }} />
      <input
        type="range"
        class="point"
        aria-label="Point of the chart"
        aria-valuetext={`${where} ${texts.join(', ')}`}
        min={0}
        max={last}
        value={point ?? last}
        onFocus={() => pointTo(last)}
        onInput={(event) => pointTo(Number(event.currentTarget.value))}
        onBlur={() => pointTo(-1)}
      />
      <figcaption>
        {series.map(({ colour }, place) => (
          <span key={colour}>
            <i class={`swatch ${colour}`} />
            {texts[place]}
          </span>
        ))}
        <span>{where}</span>
      </figcaption>
    </figure>
  );
}

interface Drawn extends Pick<ChartProps, 'x' | 'series' | 'xText'> {
  readonly kind: 'lines' | 'bars';
  readonly onPoint: (at: number | null) => void;
}

/** What a chart draws now; null: it is destroyed, and refers to nothing of the page. */
interface Source {
  drawn: { readonly current: Drawn } | null;
}

function valueText(value: number | null | undefined): string {
  return value === null || value === undefined ? 'not known' : formatCount(value);
}

function dataOf({ x, series }: Drawn): Plot.AlignedData {
  return [[...x], ...series.map(({ values }) => [...values])];
}

const COLOURS = ['ok', 'bad', 'accent', 'warn', 'muted', 'line'] as const;
type Colours = Readonly<Record<(typeof COLOURS)[number], string>>;

function coloursOf(target: HTMLElement): Colours {
  const style = getComputedStyle(target);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Colours;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function optionsOf(size: Size, colours: Colours, source: Source): Plot.Options {
  const font = '11px system-ui, sans-serif';
  const axis = {
    stroke: colours.muted,
    font,
    grid: { stroke: colours.line, width: 1 },
    ticks: { show: false },
    incrs: WHOLE,
  };
  const { kind, series } = source.drawn?.current ?? { kind: 'lines', series: [] };
  const isBars = kind === 'bars';
  return {
    ...size,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => source.drawn?.current.onPoint(cursor.idx ?? null)] },
    // Half of the last label of the axis is to the right of its tick.
    padding: [8, 32, 0, 0],
    scales: {
      x: { time: false, ...(isBars ? { range: (plot) => [-0.6, (plot.data[0]?.length ?? 1) - 0.4] } : {}) },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      {
        ...axis,
        space: 90,
        size: 28,
        ...(isBars ? { grid: { show: false } } : {}),
        values: (_, values) => values.map((value) => source.drawn?.current.xText(value) ?? ''),
      },
      { ...axis, size: 44, values: (_, values) => values.map(formatShort) },
    ],
    series: [
      {},
      ...series.map((one, at) => ({
        stroke: colours[one.colour],
        width: isBars ? 0 : 1.5,
        // Not by its colour alone.
        dash: one.colour === 'bad' ? [4, 2] : [],
        points: { show: false },
        ...(isBars ? { fill: colours[one.colour], ...barsOf(at, series.length) } : {}),
      })),
    ],
  };
}

/** 1, 2, 5, 10 and so on: counts have no fractions. */
const WHOLE = Array.from({ length: 40 }, (_, at) => Number(`${'125'[at % 3]}e${Math.floor(at / 3)}`));

/** Bars of two series are beside each other. */
function barsOf(at: number, count: number): Pick<Plot.Series, 'paths'> {
  const align = count === 1 ? 0 : at === 0 ? -1 : 1;
  const paths = uPlot.paths.bars?.({ size: [count === 1 ? 0.6 : 0.35, 60], align });
  return paths === undefined ? {} : { paths };
}
