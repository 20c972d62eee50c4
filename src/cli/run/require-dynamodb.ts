import { type DynamoDBAddress, parseDynamoDBAddress } from '../../backends/dynamodb/address.js';
import { ValidationError } from '../../core/errors.js';

/** For commands that work only on DynamoDB. */
export function requireDynamoDB(address: string): Omit<DynamoDBAddress, 'namespace'> {
  const parsed = parseDynamoDBAddress(address);
  if (parsed === null) throw new ValidationError('--store', 'an address such as dynamodb://my-table', address);
  const { namespace: _, ...place } = parsed;
  return place;
}
