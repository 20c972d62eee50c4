import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { keyItem } from '../table/attributes.js';
import type { RecordKey } from '../table/keys.js';
import type { Table } from '../client/requests.js';
import { Expression } from '../bucket/expressions/expression.js';
import type { AttributeValue, Item } from '../client/transport.js';

/** One record to write, change, delete or only check, as a part of a transaction. */
export type Action = TransactWriteItem;

/** What must hold of a record: these attributes have these values. undefined: the attribute is not there. */
export type Seen = Readonly<Record<string, AttributeValue | undefined>>;

/** There is no record of that key. */
export const ABSENT: Seen = { PK: undefined };

/** The condition that a record is as seen. */
export function requiring(seen: Seen): Expression {
  const expression = new Expression();
  for (const [name, value] of Object.entries(seen)) {
    if (value === undefined) expression.requireAbsent(name);
    else expression.requireEqual(name, value);
  }
  return expression;
}

/** Writes a record whole, if it was as seen. */
export function putAction(table: Table, item: Item, seen: Seen): Action {
  return { Put: { TableName: table.name, Item: item, ...requiring(seen).build() } };
}

/** Deletes a record, if it was as seen. */
export function deleteAction(table: Table, key: RecordKey, seen: Seen): Action {
  return { Delete: { TableName: table.name, Key: keyItem(key), ...requiring(seen).build() } };
}

/** Changes nothing: the others are written only if this record is as seen. */
export function checkAction(table: Table, key: RecordKey, seen: Seen): Action {
  return { ConditionCheck: { TableName: table.name, Key: keyItem(key), ...requiring(seen).build() } };
}

export interface Update {
  readonly set?: Item;
  readonly remove?: readonly string[];
  readonly add?: Readonly<Record<string, number>>;
}

/** Changes some attributes of a record that is there, if it was as seen. */
export function updateAction(
  table: Table,
  key: RecordKey,
  { set = {}, remove = [], add = {} }: Update,
  seen: Seen,
): Action {
  const expression = requiring(seen).requireExisting('PK');
  for (const [name, value] of Object.entries(set)) expression.set(name, value);
  for (const name of remove) expression.remove(name);
  for (const [name, amount] of Object.entries(add)) expression.add(name, amount);
  return { Update: { TableName: table.name, Key: keyItem(key), ...expression.buildUpdate() } };
}
