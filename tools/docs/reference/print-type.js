import { inWrittenOrder } from './word-order.js';

/** The TypeScript text of a type of TypeDoc's model, on one line: the formatter breaks it. */
export function printType(type) {
  if (type === undefined) return 'unknown';
  const print = PRINTERS[type.type];
  return print === undefined ? type.toString() : print(type);
}

const PRINTERS = {
  array: (type) => `${inParentheses(type.elementType)}[]`,
  conditional: (type) =>
    `${printType(type.checkType)} extends ${printType(type.extendsType)} ? ${printType(type.trueType)} : ${printType(type.falseType)}`,
  indexedAccess: (type) => `${inParentheses(type.objectType)}[${printType(type.indexType)}]`,
  intersection: (type) => type.types.map(inParentheses).join(' & '),
  literal: (type) => (typeof type.value === 'string' ? `'${type.value}'` : String(type.value)),
  namedTupleMember: (type) => `${type.name}${type.isOptional ? '?' : ''}: ${printType(type.element)}`,
  optional: (type) => `${inParentheses(type.elementType)}?`,
  reference: (type) => type.name + printArguments(type.typeArguments),
  reflection: (type) => printLiteral(type.declaration),
  rest: (type) => `...${inParentheses(type.elementType)}`,
  tuple: (type) => `[${type.elements.map(printType).join(', ')}]`,
  typeOperator: (type) => `${type.operator} ${inParentheses(type.target)}`,
  union: (type) => inStableOrder(type.types).map(inParentheses).join(' | '),
};

function inStableOrder(types) {
  if (!types.every(({ type, value }) => type === 'literal' && typeof value === 'string')) return types;
  const words = inWrittenOrder(types.map(({ value }) => value));
  return types.toSorted((a, b) => words.indexOf(a.value) - words.indexOf(b.value));
}

const COMPOUND = new Set(['union', 'intersection', 'conditional', 'typeOperator']);

function inParentheses(type) {
  const isFunction = type.type === 'reflection' && type.declaration.signatures !== undefined;
  return COMPOUND.has(type.type) || isFunction ? `(${printType(type)})` : printType(type);
}

function printArguments(types) {
  return types === undefined || types.length === 0 ? '' : `<${types.map(printType).join(', ')}>`;
}

/** An object type with the comments of its fields, or a function type. */
function printLiteral({ signatures, children = [], indexSignatures = [] }) {
  const [signature] = signatures ?? [];
  if (signature !== undefined && children.length === 0) {
    return `${printTypeParameters(signature)}${printParameters(signature)} => ${printType(signature.type)}`;
  }
  const fields = children.map((child) => `${printComment(child)}${printField(child)};`);
  const indexes = indexSignatures.map(
    ({ parameters: [key], type }) => `[${key.name}: ${printType(key.type)}]: ${printType(type)};`,
  );
  return `{ ${[...fields, ...indexes].join(' ')} }`;
}

function printField(field) {
  const [method] = field.signatures ?? [];
  const mark = field.flags.isOptional ? '?' : '';
  if (method !== undefined) return `${field.name}${mark}${printSignature(method)}`;
  return `${field.name}${mark}: ${printType(withoutUndefined(field))}`;
}

function printComment({ comment }) {
  const text = comment?.summary
    .map((part) => part.text)
    .join('')
    .replaceAll(/\s+/g, ' ');
  return text ? `\n/** ${text} */\n` : '';
}

/** `<T>(a: A, b?: B): R` */
export function printSignature(signature) {
  return `${printTypeParameters(signature)}${printParameters(signature)}: ${printType(signature.type)}`;
}

export function printTypeParameters({ typeParameters = [] }) {
  if (typeParameters.length === 0) return '';
  const printed = typeParameters.map(
    ({ name, type, default: fallback }) =>
      name +
      (type === undefined ? '' : ` extends ${printType(type)}`) +
      (fallback === undefined ? '' : ` = ${printType(fallback)}`),
  );
  return `<${printed.join(', ')}>`;
}

export function printParameters({ parameters = [] }) {
  const printed = parameters.map((parameter) => {
    const isOptional = parameter.flags.isOptional || parameter.defaultValue !== undefined;
    const rest = parameter.flags.isRest ? '...' : '';
    // TypeDoc's name of a parameter that is destructured.
    const name = parameter.name === '__namedParameters' ? 'options' : parameter.name;
    return `${rest}${name}${isOptional ? '?' : ''}: ${printType(withoutUndefined(parameter))}`;
  });
  return `(${printed.join(', ')})`;
}

/** The type of an optional field without the `undefined` that its question mark says. */
export function withoutUndefined({ type, flags }) {
  if (!flags.isOptional || type?.type !== 'union') return type;
  const types = type.types.filter((part) => !(part.type === 'intrinsic' && part.name === 'undefined'));
  return types.length === 1 ? types[0] : Object.assign(Object.create(type), { types });
}
