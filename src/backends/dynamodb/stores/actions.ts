import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { keyItem, type RecordKey } from '../table/keys.js';
import type { Table } from '../client/requests.js';
import { Expression } from '../expressions/expression.js';
import type { AttributeValue, Item } from '../client/transport.js';

/** One put, update, delete or condition check of a transaction. */
export type Action = TransactWriteItem;

/** The required values of a record's attributes. undefined: the attribute does not exist. */
export type Seen = Readonly<Record<string, AttributeValue | undefined>>;

/** Requires that there is no record with that key. */
export const ABSENT: Seen = { PK: undefined };

/** The condition that a record has the seen values. */
export function requiring(seen: Seen): Expression {
  const expression = new Expression();
  for (const [name, value] of Object.entries(seen)) {
    if (value === undefined) expression.requireAbsent(name);
    else expression.requireEqual(name, value);
  }
  return expression;
}

/** Writes a whole record if it has the seen values. */
export function putAction(table: Table, item: Item, seen: Seen): Action {
  return { Put: { TableName: table.name, Item: item, ...requiring(seen).build() } };
}

/** Deletes a record if it has the seen values. */
export function deleteAction(table: Table, key: RecordKey, seen: Seen): Action {
  return { Delete: { TableName: table.name, Key: keyItem(key), ...requiring(seen).build() } };
}

/** Changes nothing: the other actions are written only if this record has the seen values. */
export function checkAction(table: Table, key: RecordKey, seen: Seen): Action {
  return { ConditionCheck: { TableName: table.name, Key: keyItem(key), ...requiring(seen).build() } };
}

export interface ItemUpdate {
  readonly set?: Item;
  readonly remove?: readonly string[];
  readonly add?: Readonly<Record<string, number>>;
}

/** Changes attributes of an existing record if it has the seen values. */
export function updateAction(
  table: Table,
  key: RecordKey,
  { set = {}, remove = [], add = {} }: ItemUpdate,
  seen: Seen,
): Action {
  const expression = requiring(seen).requireExisting('PK');
  for (const [name, value] of Object.entries(set)) expression.set(name, value);
  for (const name of remove) expression.remove(name);
  for (const [name, amount] of Object.entries(add)) expression.add(name, amount);
  return { Update: { TableName: table.name, Key: keyItem(key), ...expression.buildUpdate() } };
}
