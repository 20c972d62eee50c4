import type { PutItemInput, TransactWriteItem, UpdateItemInput } from '@aws-sdk/client-dynamodb';
import type { Creation, RecordStep, RecordValue, RecordWrite, Update } from '../bucket/writes/record-write.js';
import { keyItem } from '../table/attributes.js';
import type { AttributeValue } from '../client/transport.js';
import { Aliases } from './aliases.js';
import { emptyShape, MAX_CACHED_STEPS } from './expression-shape.js';
import { Expression, type ExpressionInput, inputOf, requireUpdate } from './expression.js';
import { buildShardItem } from './shard-item.js';

/** An update that returns the whole item: the new one, or the one that refused it. */
export function renderUpdate(tableName: string, { key, steps }: Update): UpdateItemInput {
  return {
    TableName: tableName,
    Key: keyItem(key),
    ...renderSteps(steps),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

/** A put that returns the item that refused it. */
export function renderCreate(tableName: string, { ns, image }: Creation): PutItemInput {
  return {
    TableName: tableName,
    Item: buildShardItem(ns, image),
    ConditionExpression: 'attribute_not_exists(PK)',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

/** One action of a transaction. */
export function renderAction(tableName: string, write: RecordWrite): TransactWriteItem {
  switch (write.kind) {
    case 'create':
      return { Put: renderCreate(tableName, write) };
    case 'update':
      return { Update: { TableName: tableName, Key: keyItem(write.key), ...requireUpdate(renderSteps(write.steps)) } };
    case 'delete':
      return { Delete: { TableName: tableName, Key: keyItem(write.key), ...renderSteps(write.steps) } };
  }
}

/** Most writes of a process have one of a few shapes: then the text is found, and only names and values are new. */
export function renderSteps(steps: readonly RecordStep[]): ExpressionInput {
  if (steps.length > MAX_CACHED_STEPS) return renderAnew(steps);
  const aliases = new Aliases();
  let shape = emptyShape();
  for (const { op, attribute, value } of steps) {
    if (op === 'add' && value === 0) continue;
    const name = aliases.ofName(attribute);
    shape = shape.with(op, name, value === null ? '' : aliases.ofValue(attributeValue(value)));
  }
  if (shape.text === null) {
    const { UpdateExpression, ConditionExpression } = renderAnew(steps);
    shape.text = { UpdateExpression, ConditionExpression };
  }
  return inputOf(shape.text, aliases);
}

/** Renders without the cache. */
export function renderAnew(steps: readonly RecordStep[]): ExpressionInput {
  const expression = new Expression();
  for (const step of steps) render(expression, step);
  return expression.build();
}

function render(expression: Expression, { op, attribute, value }: RecordStep): void {
  switch (op) {
    case 'equal':
      expression.requireEqual(attribute, attributeValue(value));
      break;
    case 'other':
      expression.requireOther(attribute, attributeValue(value));
      break;
    case 'at-least':
      expression.requireWithin(attribute, value, null);
      break;
    case 'at-most':
      expression.requireWithin(attribute, null, value);
      break;
    case 'absent-or-at-most':
      expression.requireAbsentOrAtMost(attribute, value);
      break;
    case 'absent':
      expression.requireAbsent(attribute);
      break;
    case 'set':
      expression.set(attribute, attributeValue(value));
      break;
    case 'add':
      expression.add(attribute, value);
      break;
    case 'remove':
      expression.remove(attribute);
      break;
  }
}

function attributeValue(value: RecordValue): AttributeValue {
  return typeof value === 'string' ? { S: value } : { N: String(value) };
}
