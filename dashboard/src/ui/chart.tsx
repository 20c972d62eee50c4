import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { formatShort } from '../model/format.js';

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

/** A line chart. It is drawn again when the theme or the width changes. */
export function Chart({ label, x, series, height, xText, kind = 'lines' }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ x, series, xText, kind });
  latest.current = { x, series, xText, kind };
  const shape = series.map(({ label: name, colour }) => `${name} ${colour}`).join('\n');
  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    // The engine may keep one destroyed chart for ever (its literals with getters are part of the shape of objects). A
    // chart therefore gets a node of its own, which is taken out of the page, and no other reference to the page.
    let holder: HTMLElement | null = null;
    const end = (): void => {
      plot.current?.destroy();
      plot.current = null;
      holder?.remove();
    };
    const make = (): void => {
      end();
      holder = target.appendChild(document.createElement('div'));
      const size = { width: target.clientWidth, height };
      plot.current = new uPlot(optionsOf(size, coloursOf(target), latest.current), dataOf(latest.current), holder);
    };
    make();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height }));
    resized.observe(target);
    dark.addEventListener('change', make);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', make);
      end();
    };
  }, [shape, height]);
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [x, series]);
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} style={{ height: `${height}px` }} />
      <figcaption>
        {series.map(({ label: name, colour }) => (
          <span key={name} class="key">
            <i class={`swatch ${colour}`} />
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

type Drawn = Pick<ChartProps, 'x' | 'series' | 'xText'> & { readonly kind: 'lines' | 'bars' };

function dataOf({ x, series }: Drawn): uPlot.AlignedData {
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

function optionsOf(size: Size, colours: Colours, drawn: Drawn): uPlot.Options {
  const font = '11px system-ui, sans-serif';
  const axis = { stroke: colours.muted, font, grid: { stroke: colours.line, width: 1 }, ticks: { show: false } };
  const isBars = drawn.kind === 'bars';
  return {
    ...size,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: {
      x: { time: false, ...(isBars ? { range: (plot) => [-0.6, (plot.data[0]?.length ?? 1) - 0.4] } : {}) },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      {
        ...axis,
        space: 90,
        size: 28,
        ...(isBars ? { incrs: WHOLE, grid: { show: false } } : {}),
        values: (_, values) => values.map((value) => drawn.xText(value)),
      },
      { ...axis, size: 44, values: (_, values) => values.map(formatShort) },
    ],
    series: [
      {},
      ...drawn.series.map((one, at) => ({
        stroke: colours[one.colour],
        width: isBars ? 0 : 1.5,
        points: { show: false },
        ...(isBars ? { fill: colours[one.colour], ...barsOf(at, drawn.series.length) } : {}),
      })),
    ],
  };
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

/** Bars of two series are beside each other. */
function barsOf(at: number, count: number): Pick<uPlot.Series, 'paths'> {
  const align = count === 1 ? 0 : at === 0 ? -1 : 1;
  const paths = uPlot.paths.bars?.({ size: [count === 1 ? 0.6 : 0.35, 60], align });
  return paths === undefined ? {} : { paths };
}
