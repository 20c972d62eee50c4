import { ValidationError } from '../../core/errors.js';
import type { Table } from './client/requests.js';
import type { SdkOptions } from './client/sdk-transport.js';
import { isTableName, TABLE_NAME } from './table/table-name.js';

const PREFIX = 'dynamodb://';
const PARAMETERS = ['region', 'endpoint', 'namespace'];

export interface DynamoDBAddress extends Pick<SdkOptions, 'region' | 'endpoint'> {
  readonly table: string;
  readonly namespace?: string;
}

/**
 * Parses `dynamodb://my-table?region=eu-west-1&endpoint=http://127.0.0.1:8000&namespace=acme`. null: another scheme.
 */
export function parseDynamoDBAddress(address: string): DynamoDBAddress | null {
  if (!address.startsWith(PREFIX)) return null;
  const [table = '', query = '', ...more] = address.slice(PREFIX.length).split('?');
  if (table === '' || more.length > 0) {
    throw new ValidationError('store', 'an address such as dynamodb://my-table?region=eu-west-1', address);
  }
  if (!isTableName(table)) {
    throw new ValidationError('store', `an address whose table has ${TABLE_NAME}`, address);
  }
  const parameters = new URLSearchParams(query);
  for (const key of parameters.keys()) {
    if (!PARAMETERS.includes(key)) {
      throw new ValidationError('store', `an address with no parameters but ${PARAMETERS.join(', ')}`, address);
    }
  }
  const endpoint = parameters.get('endpoint') || null;
  if (endpoint !== null && !(/^https?:\/\//.test(endpoint) && URL.canParse(endpoint))) {
    throw new ValidationError('store', 'an address whose endpoint is a URL like http://127.0.0.1:8000', address);
  }
  return { table, ...Object.fromEntries([...parameters].filter(([, value]) => value !== '')) };
}

/** The address of a table as a command-line argument, with the region and endpoint that its client was given. */
export function storeArgument({ name, address = {} }: Pick<Table, 'name' | 'address'>): string {
  const given = [
    ['region', address.region],
    ['endpoint', address.endpoint],
  ].flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]));
  return given.length === 0 ? `${PREFIX}${name}` : `'${PREFIX}${name}?${given.join('&')}'`;
}
