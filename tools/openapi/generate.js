import openapiTS, { astToString } from 'openapi-typescript';

/** The TypeScript types of an OpenAPI document, read-only as those of the client. */
export async function generateTypes(document) {
  return astToString(await openapiTS(document, { immutable: true }));
}
