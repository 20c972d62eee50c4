import type * as Sdk from '@aws-sdk/client-lambda';
import { type AwsOptions, clientConfig, lazyClient, serviceErrorName } from './aws-client.js';
import type { Functions, FunctionState } from '../stack-tools.js';

/** Lambda through the AWS SDK. The SDK is loaded by the first call. */
export function sdkFunctions(options: AwsOptions): Functions {
  const { send, close } = lazyClient(options, {
    peer: '@aws-sdk/client-lambda',
    load: async () => import('@aws-sdk/client-lambda'),
    make: (sdk) => new sdk.LambdaClient(clientConfig(options)),
  });
  return {
    async describe(name) {
      try {
        const found = await send('Lambda GetFunctionConfiguration', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.GetFunctionConfigurationCommand({ FunctionName: name }), { abortSignal }),
        );
        return stateOf(name, found);
      } catch (error) {
        if (serviceErrorName(error) === 'ResourceNotFoundException') return null;
        throw error;
      }
    },
    async readCode(name) {
      try {
        return await send('Lambda GetFunction', async ({ sdk, client }, abortSignal) => {
          const found = await client.send(new sdk.GetFunctionCommand({ FunctionName: name }), { abortSignal });
          // The location is a signed address, valid for ten minutes. It is not an SDK request.
          const answer = await fetch(found.Code?.Location ?? '', { signal: abortSignal });
          if (!answer.ok) throw new TypeError(`the code could not be read: ${answer.status}`);
          return { sha256: found.Configuration?.CodeSha256 ?? '', bytes: new Uint8Array(await answer.arrayBuffer()) };
        });
      } catch (error) {
        if (serviceErrorName(error) === 'ResourceNotFoundException') return null;
        throw error;
      }
    },
    async uploadCode(name, zip) {
      await send('Lambda UpdateFunctionCode', async ({ sdk, client }, abortSignal) =>
        client.send(new sdk.UpdateFunctionCodeCommand({ FunctionName: name, ZipFile: zip }), { abortSignal }),
      );
    },
    close,
  };
}

function stateOf(name: string, found: Sdk.FunctionConfiguration): FunctionState {
  return {
    name: found.FunctionName ?? name,
    sha256: found.CodeSha256 ?? '',
    state: found.State ?? 'Active',
    update: found.LastUpdateStatus ?? 'Successful',
    reason: found.LastUpdateStatusReason ?? found.StateReason ?? null,
    runtime: found.Runtime ?? null,
  };
}
