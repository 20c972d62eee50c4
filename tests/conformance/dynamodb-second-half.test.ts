import { describeDynamoDB } from '../support/dynamodb/conformance.js';

describeDynamoDB(undefined, 'second');
