import type { Stack } from '../../infra/stack/stack-tools.js';
import { ENV_TAG, VERSION_TAG } from '../../infra/stack/status/stack-status.js';
import { PARAMETERS } from '../../infra/template/names.js';
import type { StackItemShape } from './stack-shapes.js';

export function stackItem({ name, status, tags, parameters, createdAt, updatedAt }: Stack): StackItemShape {
  return {
    stack: name,
    env: tags[ENV_TAG] ?? null,
    status,
    version: tags[VERSION_TAG] ?? null,
    table: parameters[PARAMETERS.tableName] ?? null,
    createdAt: createdAt?.toISOString() ?? null,
    updatedAt: updatedAt?.toISOString() ?? null,
  };
}
