/** Warnings about the models that a council names. */
import type { Blueprint, SavedMember } from '../generated/schemas.js';
import type { GraphIssue } from './validate.js';
import { warning } from './validate.js';

/** Providers that the service knows by name (contract, section 6.1). */
const BUILT_IN = new Set([
  ...['openai', 'anthropic', 'gemini', 'openrouter', 'mistral', 'groq', 'deepseek', 'xai', 'ollama', 'offline'],
]);

/**
 * A warning for each model whose provider is known and not configured: its runs would use the default provider.
 *
 * @param providers names of the configured ones
 */
export function modelIssues(
  { nodes, fallbacks = [] }: Pick<Blueprint, 'nodes' | 'fallbacks'>,
  providers: readonly string[],
): readonly GraphIssue[] {
  const named = [
    ...fallbacks.map((model, index) => ({ path: `fallbacks[${index}]`, model, node: null })),
    ...nodes.flatMap((node, at) => [
      ...namedBy(node, `nodes[${at}]`, node.id),
      ...(node.members ?? []).flatMap((member, index) => namedBy(member, `nodes[${at}].members[${index}]`, node.id)),
    ]),
  ];
  return named.flatMap(({ path, model, node }) => {
    const provider = model.slice(0, model.includes('/') ? model.indexOf('/') : undefined);
    if (!BUILT_IN.has(provider) || providers.includes(provider)) return [];
    const of = node === null ? '' : ` of node "${node}"`;
    return [
      warning(
        path,
        `Provider "${provider}" is not configured: runs ask the default provider for the model "${model}"${of}`,
        node,
      ),
    ];
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
