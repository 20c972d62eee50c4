import { expect, test } from 'vitest';
import { loopbackDefaults } from './loopback.js';

const KEYS = { accessKeyId: 'headgate', secretAccessKey: 'headgate' };

test.each([
  'http://127.0.0.1:8000',
  'http://127.1.2.3',
  'http://localhost:4566',
  'http://db.localhost',
  'http://[::1]:1',
])('the endpoint %s needs no AWS settings', (endpoint) => {
  expect(loopbackDefaults({ endpoint }, {})).toEqual({ region: 'us-east-1', credentials: KEYS });
});

test.each([
  'https://dynamodb.eu-west-1.amazonaws.com',
  'http://10.0.0.7:8000',
  'http://localhost.example.com',
  undefined,
])('the endpoint %s gets no default settings', (endpoint) => {
  expect(loopbackDefaults({ endpoint }, {})).toEqual({});
});

test('a given region and keys of the environment are kept', () => {
  const endpoint = 'http://127.0.0.1:8000';
  const env = { AWS_ACCESS_KEY_ID: 'mine', AWS_REGION: 'eu-west-1' };
  expect(loopbackDefaults({ endpoint, region: 'eu-west-1' }, {})).toEqual({ credentials: KEYS });
  expect(loopbackDefaults({ endpoint }, env)).toEqual({});
});
