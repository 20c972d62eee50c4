import type { Item, Operation, Operations, Transport } from '../src/backends/dynamodb/client/transport.js';

type UpdateInput = Operations['UpdateItem'][0];

/**
 * Answers each write of a bucket at once, as the store would if its condition held, and sends everything else to the
 * given transport. What remains is the CPU of Headgate itself. It checks no condition, so it serves no test. `delay`: how
 * long an answer takes.
 */
export function answeringTransport(rest: Transport, delay: () => Promise<unknown>): Transport {
  const items = new Map<string, Item>();
  return {
    load: async () => rest.load?.(),
    storeTimeMs: () => rest.storeTimeMs(),
    close: () => rest.close(),
    async send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: number) {
      const { Key, Item: created } = input as { readonly Key?: Item; readonly Item?: Item };
      const stored = operation === 'UpdateItem' ? items.get(Key?.['PK']?.S ?? '') : undefined;
      if (stored !== undefined) {
        // A transport turns the input into text. That includes the cost of joining the parts of its strings.
        JSON.stringify(input);
        const Attributes = updated(stored, input as UpdateInput);
        items.set(Attributes['PK']?.S ?? '', Attributes);
        await delay();
        return { Attributes } as Operations[Op][1];
      }
      if (operation !== 'PutItem' || created?.['w'] === undefined) return rest.send(operation, input, deadline);
      items.set(created['PK']?.S ?? '', created);
      return { ConsumedCapacity: {} } as Operations[Op][1];
    },
  };
}

interface Change {
  readonly clause: 'SET' | 'ADD' | 'REMOVE';
  readonly name: string;
  readonly value: string;
}

/** Cached, so that parsing hardly adds to the measured CPU. */
const parsedChanges = new Map<string, readonly Change[]>();

/** The item after an update. */
export function updated(stored: Item, input: UpdateInput): Item {
  const { UpdateExpression = '', ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = input;
  let changes = parsedChanges.get(UpdateExpression);
  if (changes === undefined) parsedChanges.set(UpdateExpression, (changes = parseChanges(UpdateExpression)));
  const item = { ...stored };
  for (const { clause, name, value } of changes) {
    const attribute = names[name] ?? name;
    const given = values[value];
    if (clause === 'REMOVE') delete item[attribute];
    else if (clause === 'SET' && given !== undefined) item[attribute] = given;
    else item[attribute] = { N: String(Number(item[attribute]?.N ?? 0) + Number(given?.N)) };
  }
  return item;
}

function parseChanges(expression: string): readonly Change[] {
  return expression.split(/ (?=(?:SET|ADD|REMOVE) )/).flatMap((part) => {
    const clause = part.slice(0, part.indexOf(' ')) as Change['clause'];
    const changes = part.slice(clause.length + 1).split(', ');
    return changes.map((change) => {
      const [name = '', value = ''] = change.split(/ = | /);
      return { clause, name, value };
    });
  });
}
