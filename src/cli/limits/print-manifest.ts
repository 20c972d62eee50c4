import { Document, isScalar, isSeq, type Scalar, visit } from 'yaml';
import type { ManifestData } from '../../core/manifest/manifest.js';

const QUOTED = 'QUOTE_DOUBLE' satisfies Scalar.Type;

/** All other text is quoted: YAML could read it as another type, and UTF-8 cannot encode half a surrogate pair. */
const PLAIN = /^[\w ./:@|+-]*$/;

/** Prints a limits file in the style of the documentation. */
export function printManifest(data: ManifestData): string {
  const document = new Document(data, { aliasDuplicateObjects: false });
  visit(document, {
    Pair: (_, { key, value }) => {
      if (!isScalar(key) || key.value !== 'limits' || !isSeq(value)) return;
      // On one line and in quotes, as in the examples of the documentation.
      value.flow = true;
      for (const item of value.items) if (isScalar(item)) item.type = QUOTED;
    },
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && !PLAIN.test(scalar.value)) scalar.type = QUOTED;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
