export { createTable, type CreateTableOptions } from './create-table.js';
export { dynamodb, type DynamoDBOptions } from './dynamodb.js';
