import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { keyItem } from '../attributes.js';
import type { RecordKey } from '../keys.js';
import type { Table } from '../requests.js';
import type { AttributeValue, Item } from '../transport.js';

/** One record to write, change, delete or only check, as a part of a transaction. */
export type Action = TransactWriteItem;

/** What must hold of a record: these attributes have these values. undefined: the attribute is not there. */
export type Seen = Readonly<Record<string, AttributeValue | undefined>>;

/** There is no record of that key. */
export const ABSENT: Seen = { PK: undefined };

interface Expression {
  readonly names: Record<string, string>;
  readonly values: Record<string, AttributeValue>;
}

/** Aliases are numbered, never made of names. */
function alias(expression: Expression, name: string): string {
  const placeholder = `#a${Object.keys(expression.names).length}`;
  expression.names[placeholder] = name;
  return placeholder;
}

function valueOf(expression: Expression, value: AttributeValue): string {
  const placeholder = `:v${Object.keys(expression.values).length}`;
  expression.values[placeholder] = value;
  return placeholder;
}

function conditionOf(expression: Expression, seen: Seen): string {
  return Object.entries(seen)
    .map(([name, value]) =>
      value === undefined
        ? `attribute_not_exists(${alias(expression, name)})`
        : `${alias(expression, name)} = ${valueOf(expression, value)}`,
    )
    .join(' AND ');
}

function parts({ names, values }: Expression) {
  return {
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}

const start = (): Expression => ({ names: {}, values: {} });

/** Writes a record whole, if it was as seen. */
export function putAction(table: Table, item: Item, seen: Seen): Action {
  const expression = start();
  const condition = conditionOf(expression, seen);
  return { Put: { TableName: table.name, Item: item, ConditionExpression: condition, ...parts(expression) } };
}

/** Deletes a record, if it was as seen. */
export function deleteAction(table: Table, key: RecordKey, seen: Seen): Action {
  const expression = start();
  const condition = conditionOf(expression, seen);
  return {
    Delete: { TableName: table.name, Key: keyItem(key), ConditionExpression: condition, ...parts(expression) },
  };
}

/** Changes nothing: the others are written only if this record is as seen. */
export function checkAction(table: Table, key: RecordKey, seen: Seen): Action {
  const expression = start();
  const condition = conditionOf(expression, seen);
  return {
    ConditionCheck: { TableName: table.name, Key: keyItem(key), ConditionExpression: condition, ...parts(expression) },
  };
}

export interface Update {
  readonly set?: Item;
  readonly remove?: readonly string[];
  readonly add?: Item;
}

/** Changes some attributes of a record that is there, if it was as seen. */
export function updateAction(
  table: Table,
  key: RecordKey,
  { set = {}, remove = [], add = {} }: Update,
  seen: Seen,
): Action {
  const expression = start();
  const assign = (name: string, value: AttributeValue): string =>
    `${alias(expression, name)} = ${valueOf(expression, value)}`;
  const sum = (name: string, value: AttributeValue): string =>
    `${alias(expression, name)} ${valueOf(expression, value)}`;
  const clauses = [
    ['SET', Object.entries(set).map(([name, value]) => assign(name, value))],
    ['REMOVE', remove.map((name) => alias(expression, name))],
    ['ADD', Object.entries(add).map(([name, value]) => sum(name, value))],
  ] as const;
  const update = clauses.filter(([, terms]) => terms.length > 0).map(([verb, terms]) => `${verb} ${terms.join(', ')}`);
  const exists = `attribute_exists(${alias(expression, 'PK')})`;
  const condition = [exists, conditionOf(expression, seen)].filter((term) => term !== '').join(' AND ');
  return {
    Update: {
      TableName: table.name,
      Key: keyItem(key),
      UpdateExpression: update.join(' '),
      ConditionExpression: condition,
      ...parts(expression),
    },
  };
}
