import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { formatShort } from '../model/format.js';

export interface ChartSeries {
  readonly label: string;
  /** The name of a colour of the style sheet. */
  readonly colour: 'ok' | 'bad' | 'accent' | 'warn';
  readonly values: readonly number[];
}

interface ChartProps {
  /** What the chart shows, for readers who do not see it. */
  readonly label: string;
  /** Seconds since 1970, or positions. */
  readonly x: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly height: number;
  readonly xText: (value: number) => string;
}

const dark = matchMedia('(prefers-color-scheme: dark)');

/** A line chart. It is drawn again when the theme or the width changes. */
export function Chart({ label, x, series, height, xText }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ x, series, xText });
  latest.current = { x, series, xText };
  const shape = series.map(({ label: name, colour }) => `${name} ${colour}`).join('\n');
  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    const make = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(target, height, latest.current), dataOf(latest.current), target);
    };
    make();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height }));
    resized.observe(target);
    dark.addEventListener('change', make);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', make);
      plot.current?.destroy();
      plot.current = null;
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

type Drawn = Pick<ChartProps, 'x' | 'series' | 'xText'>;

function dataOf({ x, series }: Drawn): uPlot.AlignedData {
  return [[...x], ...series.map(({ values }) => [...values])];
}

function optionsOf(target: HTMLElement, height: number, drawn: Drawn): uPlot.Options {
  const style = getComputedStyle(target);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const font = '11px system-ui, sans-serif';
  const axis = { stroke: colour('muted'), font, grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
  return {
    width: target.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      { ...axis, space: 70, values: (_, values) => values.map((value) => drawn.xText(value)) },
      { ...axis, size: 44, values: (_, values) => values.map(formatShort) },
    ],
    series: [
      {},
      ...drawn.series.map((one) => ({
        stroke: colour(one.colour),
        width: 1.5,
        points: { show: drawn.x.length < 3, size: 5, fill: colour(one.colour) },
      })),
    ],
  };
}
