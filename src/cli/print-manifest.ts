import { Document, isScalar, isSeq, type Scalar, visit } from 'yaml';
import type { ManifestData } from '../core/manifest/manifest.js';

const QUOTED = 'QUOTE_DOUBLE' satisfies Scalar.Type;

/** All other text is quoted: YAML could take it for something else, and UTF-8 has no bytes for half a character. */
const PLAIN = /^[\w ./:@|+-]*$/;

/** A limits file, as somebody would write it. */
export function printManifest(data: ManifestData): string {
  const document = new Document(data, { aliasDuplicateObjects: false });
  visit(document, {
    Pair: (_, { key, value }) => {
      if (!isScalar(key) || key.value !== 'limits' || !isSeq(value)) return;
      // On one line and in quotes, as in all examples.
      value.flow = true;
      for (const item of value.items) if (isScalar(item)) item.type = QUOTED;
    },
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && !PLAIN.test(scalar.value)) scalar.type = QUOTED;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
