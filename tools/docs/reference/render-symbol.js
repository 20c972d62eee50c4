import { ReflectionKind } from 'typedoc';
import { codeBlock, memberBlock, proseOf, table } from './markdown.js';
import { printParameters, printSignature, printType, printTypeParameters, withoutUndefined } from './print-type.js';

/** The section of one export: what it is, its declaration, its properties as a table, its methods one by one. */
export async function renderSymbol(symbol, links) {
  const body = BODIES[symbol.kind];
  if (body === undefined) throw new Error(`${symbol.name}: no way to show a ${ReflectionKind[symbol.kind]}`);
  return [`## ${symbol.name}`, ...(await body(symbol, links))];
}

const BODIES = {
  [ReflectionKind.Class]: renderShape,
  [ReflectionKind.Interface]: renderShape,
  [ReflectionKind.Function]: async (symbol, links) => [
    proseOf(symbol.signatures.find(({ comment }) => comment)?.comment),
    await codeBlock(
      symbol.signatures.map((signature) => `declare function ${symbol.name}${printSignature(signature)};`),
    ),
    ...links.named(symbol.signatures.map(printSignature).join(' '), symbol),
  ],
  [ReflectionKind.TypeAlias]: async (symbol, links) => {
    const fields = symbol.children ?? [];
    const text = printType(symbol.type);
    if (fields.length > 0) return [proseOf(symbol.comment), ...(await renderMembers(symbol, fields, links))];
    return [
      proseOf(symbol.comment),
      await codeBlock([`type ${symbol.name}${printTypeParameters(symbol)} = ${text};`]),
      ...links.named(text, symbol),
    ];
  },
  [ReflectionKind.Variable]: async (symbol, links) => [
    proseOf(symbol.comment),
    await codeBlock([`declare const ${symbol.name}: ${printType(symbol.type)};`]),
    ...links.named(printType(symbol.type), symbol),
  ],
};

async function renderShape(symbol, links) {
  const parents = (symbol.extendedTypes ?? []).map(printType);
  const word = symbol.kind === ReflectionKind.Class ? 'class' : 'interface';
  const declared = `${word} ${symbol.name}${printTypeParameters(symbol)}`;
  const head =
    parents.length > 0 || symbol.typeParameters ? [`\`${[declared, ...parents.slice(0, 1)].join(' extends ')}\``] : [];
  return [
    proseOf(symbol.comment),
    ...head,
    ...links.named(parents.join(' '), symbol),
    ...(await renderMembers(symbol, symbol.children ?? [], links)),
  ];
}

async function renderMembers(symbol, members, links) {
  const own = members.filter((member) => isShown(member, links));
  const methods = own.filter(({ signatures }) => signatures !== undefined);
  const properties = own.filter(({ signatures }) => signatures === undefined);
  const rows = properties.flatMap((property) => rowsOf(property, links));
  const sections = await Promise.all(methods.map((method) => renderMethod(symbol, method, links)));
  return [...table(['property', 'type', 'meaning'], rows), ...sections.flat()];
}

/** Inherited members are in the section of the parent, if it has one. A constructor without a comment is not for callers. */
function isShown(member, links) {
  const [parent] = member.inheritedFrom?.name.split('.') ?? [];
  if ((parent !== undefined && links.isKnown(parent)) || member.name === '[BRAND]') return false;
  const isBare = member.signatures?.every(({ comment }) => comment === undefined);
  return !(member.kind === ReflectionKind.Constructor && isBare);
}

/** A row for a property, and one for each field of an object type in its place: `timeouts.callMs`. */
function rowsOf(property, links, prefix = '') {
  const { getSignature, flags } = property;
  const type = getSignature?.type ?? withoutUndefined(property);
  const name = `${prefix}${flags.isStatic ? 'static ' : ''}${property.name}`;
  const fields = type?.type === 'reflection' ? (type.declaration.children ?? []) : [];
  const shown = fields.length > 0 ? '`object`' : links.linked(printType(type));
  const text = proseOf(property.comment ?? getSignature?.comment ?? commentOfApi(type));
  const row = [`\`${name}${flags.isOptional ? '?' : ''}\``, shown, text];
  return [row, ...fields.flatMap((field) => rowsOf(field, links, `${name}.`))];
}

/** The comment of `ConfigApi` describes `limiter.config`. */
function commentOfApi(type) {
  const target = type?.type === 'reference' ? type.reflection : undefined;
  return target?.name.endsWith('Api') ? target.comment : undefined;
}

async function renderMethod(symbol, method, links) {
  const isNew = method.kind === ReflectionKind.Constructor;
  // TypeDoc's name of `[Symbol.asyncDispose]`.
  const name = method.name.replace(/^\[(?=async)/, '[Symbol.');
  const called = isNew ? `new ${symbol.name}` : `${symbol.name}${name.startsWith('[') ? '' : '.'}${name}`;
  const prefix = method.flags.isStatic ? 'static ' : '';
  const optional = method.flags.isOptional ? '?' : '';
  const lines = method.signatures.map((signature) => {
    if (isNew) return `constructor${printParameters(signature)}`;
    return `${prefix}${name}${optional}${printSignature(signature)}`;
  });
  return [
    `### ${called}`,
    proseOf(method.signatures.find(({ comment }) => comment)?.comment),
    await memberBlock(lines),
    ...links.named(lines.join(' '), symbol),
  ];
}
