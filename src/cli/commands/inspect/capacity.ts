import { drawTable } from '../../../visualize/table.js';
import { addExamples, type Definition, onStore, type StoreAction } from '../../run/define-command.js';

/** `--json` of `capacity` */
export interface CapacityShape {
  readonly resource: string;
  readonly limits: readonly {
    readonly name: string;
    readonly capacity: number;
    readonly available: number;
    readonly entities: number;
  }[];
}

export const define: Definition = (command, context) => {
  addExamples(command, ['capacity gpt-4']).action(onStore(context, showCapacity));
};

const showCapacity: StoreAction = async ({ limiter }, [resource = '']) => {
  const sums = Object.entries(await limiter.resources.capacity(resource));
  const data: CapacityShape = { resource, limits: sums.map(([name, sum]) => ({ name, ...sum })) };
  const rows = data.limits.map(({ name, capacity, available, entities }) => [
    name,
    entities,
    capacity,
    available,
    capacity === 0 ? '-' : `${Math.floor((100 * available) / capacity)} %`,
  ]);
  return {
    data,
    text: ({ width }) =>
      rows.length === 0
        ? `No bucket on ${resource}: nothing was taken.`
        : drawTable(['LIMIT', 'ENTITIES', 'CAPACITY', 'LEFT', ''], rows, width),
  };
};
