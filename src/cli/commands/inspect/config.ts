import type { ConfigEntry, ConfigLevelRef } from '../../../limiter/api/config-api.js';
import { drawTable } from '../../../visualize/table.js';
import { readChain } from './chain.js';
import {
  addExamples,
  addPaging,
  addVerb,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { moreLine, type PagingOptions, readList } from '../../arguments/paging.js';
import { describeSource, showLimits } from '../../limits/describe-limits.js';
import type { Session } from '../../run/session.js';
import type { Style } from '../../terminal/terminal.js';
import type { LimitText } from '../../run/common-shapes.js';

/** `--json` of `config show` */
export interface ConfigShape {
  readonly entityId: string;
  readonly resource: string;
  /** The limits of each level, the strongest first. */
  readonly levels: readonly {
    readonly source: 'entity' | 'entity_default' | 'resource' | 'system';
    readonly limits: readonly LimitText[];
  }[];
  /** With `--effective`: the limits that an acquire uses, of the entity first, then of its parents. */
  readonly effective: readonly EffectiveShape[] | null;
  readonly onUnavailable: 'block' | 'allow' | 'local';
}

/** `--json`: items of `config list` */
export interface ConfigEntryShape {
  readonly source: 'entity' | 'entity_default' | 'resource' | 'system';
  readonly entityId: string | null;
  readonly resource: string | null;
  readonly limits: readonly LimitText[];
  /** null on all levels but the system. */
  readonly onUnavailable: 'block' | 'allow' | 'local' | null;
}

export interface EffectiveShape {
  readonly entityId: string;
  readonly configSource: 'entity' | 'entity_default' | 'resource' | 'system' | null;
  readonly limits: readonly LimitText[];
}

export const define: Definition = (config, context) => {
  addExamples(config, ['config show --effective user-1 gpt-4']);
  addVerb(config, {
    usage: 'show <entity> <resource>',
    summary: 'Show the limits of each level of configuration for an entity and a resource',
    examples: ['config show user-1 gpt-4', 'config show --effective user-1 gpt-4'],
  })
    .option('--effective', 'also show the limits that an acquire uses, those of the parents included')
    .action(onStore(context, showConfig));
  addPaging(
    addVerb(config, {
      usage: 'list',
      summary: 'List every level that has limits',
      examples: ['config list', 'config list --all --json'],
    }),
  ).action(onStore(context, listConfigs));
};

const showConfig: StoreAction<{ readonly effective?: boolean }> = async (
  session,
  [entityId = '', resource = ''],
  options,
) => {
  const { limiter } = session;
  const limitsAt = async (level: ConfigLevelRef): Promise<readonly string[]> =>
    ((await limiter.config.get(level))?.limits ?? []).map(String);
  const data: ConfigShape = {
    entityId,
    resource,
    levels: [
      { source: 'entity', limits: await limitsAt({ entityId, resource }) },
      { source: 'entity_default', limits: await limitsAt({ entityId }) },
      { source: 'resource', limits: await limitsAt({ resource }) },
      { source: 'system', limits: await limitsAt('system') },
    ],
    effective: options.effective === true ? await readEffective(session, entityId, resource) : null,
    onUnavailable: (await limiter.config.resolve(entityId, resource)).onUnavailable,
  };
  return { data, text: (style) => render(data, style) };
};

const listConfigs: StoreAction<PagingOptions> = async (session, _, options) => {
  const data = await readList(session, options, (page) => session.limiter.config.all(page), entryOf);
  const rows = data.items.map(({ source, entityId, resource, limits, onUnavailable }) => [
    describeSource(source, entityId ?? '', resource ?? ''),
    limits.join('  ') + (onUnavailable === null ? '' : `  (while the store is out: ${onUnavailable})`),
  ]);
  return {
    data,
    text: (style) =>
      rows.length === 0
        ? 'No limits are set.'
        : drawTable(['LEVEL', 'LIMITS'], rows, style.width) + moreLine(data, style),
  };
};

function entryOf({ level, limits: rules, onUnavailable }: ConfigEntry): ConfigEntryShape {
  const limits = rules.map(String);
  if (level === 'system') return { source: 'system', entityId: null, resource: null, limits, onUnavailable };
  const resource = level.resource ?? null;
  if (!('entityId' in level)) return { source: 'resource', entityId: null, resource, limits, onUnavailable };
  const source = resource === null ? 'entity_default' : 'entity';
  return { source, entityId: level.entityId, resource, limits, onUnavailable };
}

async function readEffective({ limiter }: Session, entityId: string, resource: string): Promise<EffectiveShape[]> {
  const chain = await readChain(limiter, entityId);
  const levels = chain.map(async (level) => {
    const { limits, configSource } = await limiter.config.resolve(level, resource);
    return {
      entityId: level,
      // The command line opens its limiter without limits, so that the level `code` is empty.
      configSource: configSource === 'code' ? null : configSource,
      limits: limits.map(String),
    };
  });
  return Promise.all(levels);
}

function render({ entityId, resource, levels, effective, onUnavailable }: ConfigShape, style: Style): string {
  const wins = levels.findIndex(({ limits }) => limits.length > 0);
  const rows = levels.map(({ source, limits }, at) => [
    at === wins ? { value: '>', paint: style.green } : '',
    describeSource(source, entityId, resource),
    showLimits(limits, style, 'none'),
  ]);
  const stored = drawTable(['', 'LEVEL', 'LIMITS'], rows, style.width);
  if (effective === null) return stored;
  return `${stored}\n\n${renderEffective(effective, resource, style)}\n\nwhile the store is out: ${onUnavailable}`;
}

function renderEffective(effective: readonly EffectiveShape[], resource: string, style: Style): string {
  const rows = effective.map(({ entityId, configSource, limits }) => [
    entityId,
    showLimits(limits, style, 'none'),
    configSource === null ? '-' : describeSource(configSource, entityId, resource),
  ]);
  return drawTable(['SPENDS FROM', 'LIMITS', 'SOURCE'], rows, style.width);
}
