import { describeDynamoDB } from '../support/dynamodb/conformance.js';

describeDynamoDB('extenddb');
