import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { AttributeValue, Item } from '../../../src/backends/dynamodb/client/transport.js';

interface Conditional {
  readonly TableName: string | undefined;
  readonly Key?: Item | undefined;
  readonly Item?: Item | undefined;
  readonly UpdateExpression?: string | undefined;
  readonly ConditionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined;
  readonly ExpressionAttributeValues?: Readonly<Record<string, AttributeValue>> | undefined;
  readonly ReturnValues?: string | undefined;
  readonly ReturnValuesOnConditionCheckFailure?: string | undefined;
}

/**
 * A request as a few lines, with names and values in the places of their aliases. Throws on an unknown or unused alias,
 * which DynamoDB would refuse.
 */
export function printRequest(request: Conditional): string {
  const { ConditionExpression = '', UpdateExpression = '', Key, Item: item } = request;
  const aliases = new Map<string, string>(Object.entries(request.ExpressionAttributeNames ?? {}));
  for (const [alias, value] of Object.entries(request.ExpressionAttributeValues ?? {}))
    aliases.set(alias, print(value));
  const used = new Set<string>();
  const resolve = (expression: string): string =>
    expression.replaceAll(/[#:][a-z]\w*/g, (alias) => {
      const meaning = aliases.get(alias);
      if (meaning === undefined) throw new Error(`${alias} has no value`);
      used.add(alias);
      return meaning;
    });
  const key = (Key ?? item)!;
  const lines = [
    `${request.TableName} ${key['PK']?.S} ${key['SK']?.S}`,
    ...(item === undefined ? [] : [`PUT ${printItem(item)}`]),
    ...resolve(UpdateExpression).split(/ (?=(?:SET|ADD|REMOVE) )/),
    `IF ${resolve(ConditionExpression).replaceAll(' AND ', '\n   ')}`,
    `RETURN ${request.ReturnValues ?? 'nothing'}, else ${request.ReturnValuesOnConditionCheckFailure ?? 'nothing'}`,
  ];
  const idle = [...aliases.keys()].filter((alias) => !used.has(alias));
  if (idle.length > 0) throw new Error(`Nothing uses ${idle.join(', ')}`);
  return lines.filter((line) => line !== '').join('\n');
}

export function printTransaction(actions: readonly TransactWriteItem[]): string {
  return actions
    .map(({ Update, Put, Delete, ConditionCheck }) => {
      if (ConditionCheck !== undefined) return `CHECK ${printRequest(ConditionCheck)}`;
      if (Update !== undefined) return `UPDATE ${printRequest(Update)}`;
      return Put === undefined ? `DELETE ${printRequest(Delete!)}` : `CREATE ${printRequest(Put)}`;
    })
    .join('\n');
}

function printItem(item: Item): string {
  const rest = Object.entries(item).filter(([name]) => name !== 'PK' && name !== 'SK');
  return rest.map(([name, value]) => `${name} ${print(value)}`).join(', ');
}

function print(value: AttributeValue): string {
  return value.N ?? JSON.stringify(value.S);
}
