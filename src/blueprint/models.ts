/** Warnings about the models that a council names. */
import type { Blueprint, SavedMember } from '../generated/schemas.js';
import type { GraphIssue } from './validate.js';
import { entryOf, warning } from './validate.js';
import { modelsAsked, unpricedText } from '../graph/models-asked.js';
import { roleAmong } from '../council/roles.js';
import { graphMembers } from './members.js';

/** What the service knows of models. */
export interface KnownModels {
  /** Names of the configured providers, the default first. */
  readonly providers: readonly string[];
  /** Names of the providers that the service knows, configured or not (contract, section 6.1). */
  readonly builtIn: readonly string[];
  /** The full name of a node's model without a price, or null if it has one. */
  readonly unpriced: (model: string | undefined) => string | null;
}

type Models = Pick<Blueprint, 'nodes' | 'edges' | 'fallbacks' | 'budget'>;

/** Warnings about a council's models: providers that are not configured, and prices that its budget lacks. */
export function modelIssues(council: Models, models: KnownModels): readonly GraphIssue[] {
  return [...providerIssues(council, models), ...priceIssues(council, models)];
}

/** A warning if no run can start with the budget, because a model that a run may ask has no price. */
function priceIssues(council: Models, { unpriced }: KnownModels): readonly GraphIssue[] {
  const { nodes, edges, fallbacks = [], budget } = council;
  const entry = nodes[entryOf(council)]?.id;
  if (budget?.usd === undefined || entry === undefined) return [];
  const roleOf = roleAmong(edges);
  const asking = nodes.map((node) => {
    const { id, model, fallbacks: own = fallbacks } = node;
    const role = roleOf(node);
    return { id, role, fallbacks: own, ...(model !== undefined && { model }), ...graphMembers(node, role) };
  });
  const [name] = modelsAsked({ entry, nodes: asking, edges }).flatMap((model) => unpriced(model) ?? []);
  if (name === undefined) return [];
  return [warning('budget.usd', `No run can start with this budget. ${unpricedText(name)}`)];
}

/** A warning for each model whose provider is known and not configured: its runs would use the default provider. */
function providerIssues(
  { nodes, fallbacks = [] }: Pick<Blueprint, 'nodes' | 'fallbacks'>,
  { providers, builtIn }: KnownModels,
): readonly GraphIssue[] {
  const named = [
    ...fallbacks.map((model, index) => ({ path: `fallbacks[${index}]`, model, node: null })),
    ...nodes.flatMap((node, at) => [
      ...namedBy(node, `nodes[${at}]`, node.id),
      ...(node.members ?? []).flatMap((member, index) => namedBy(member, `nodes[${at}].members[${index}]`, node.id)),
    ]),
  ];
  return named.flatMap(({ path, model, node }) => {
    const [provider = ''] = model.split('/');
    if (!builtIn.includes(provider) || providers.includes(provider)) return [];
    const sent = `runs send model "${model}" to provider "${providers[0] ?? ''}"`;
    const by = node === null ? '' : ` for node "${node}"`;
    return [warning(path, `No provider named "${provider}" is configured: ${sent}${by}`, node)];
  });
}

/** The models of a node or member, with their paths. */
function namedBy(
  { model, fallbacks = [] }: Pick<SavedMember, 'model' | 'fallbacks'>,
  path: string,
  node: string,
): readonly { readonly path: string; readonly model: string; readonly node: string }[] {
  return [
    ...(model === undefined ? [] : [{ path: `${path}.model`, model, node }]),
    ...fallbacks.map((each, index) => ({ path: `${path}.fallbacks[${index}]`, model: each, node })),
  ];
}
