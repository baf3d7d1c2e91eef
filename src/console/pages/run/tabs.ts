/** The views of a run's page in two ranks: its result, and the trace of how it came about. */

/** A view, as `tab` of the URL names it. */
export type RunTab = ResultTab | TraceTab;
export type ResultTab = (typeof RANKS)[0]['tabs'][number]['value'];
export type TraceTab = (typeof RANKS)[1]['tabs'][number]['value'];

/** The first tab of each rank is its default. */
export const RANKS = [
  {
    value: 'result',
    text: 'Result',
    tabs: [
      { value: 'draft', text: 'Draft' },
      { value: 'changes', text: 'Changes' },
      { value: 'feedback', text: 'Feedback' },
      { value: 'deliberation', text: 'Deliberation' },
      { value: 'sources', text: 'Sources' },
    ],
  },
  {
    value: 'trace',
    text: 'Trace',
    tabs: [
      { value: 'graph', text: 'Graph' },
      { value: 'timeline', text: 'Timeline' },
      { value: 'step', text: 'Steps' },
      { value: 'events', text: 'Events' },
      { value: 'state', text: 'State' },
    ],
  },
] as const;

export type RunRank = (typeof RANKS)[number];

/** The views that show the selected step. */
export const STEP_TABS: readonly RunTab[] = ['graph', 'timeline', 'step'];

/** The view in a query. Without one, a view of the graph or a step that is named chooses it. */
export function tabIn(query: URLSearchParams): RunTab {
  const named = RANKS.flatMap(({ tabs }) => tabs.map(({ value }): RunTab => value)).find(
    (each) => each === query.get('tab'),
  );
  if (named !== undefined) return named;
  if (query.has('step')) return 'step';
  return query.has('view') ? 'graph' : 'draft';
}

/** Whether a view belongs to the result. */
export function isResult(tab: RunTab): tab is ResultTab {
  return rankOf(tab) === RANKS[0];
}

/** The rank of a view. */
export function rankOf(tab: RunTab): RunRank {
  return RANKS.find(({ tabs }) => tabs.some(({ value }) => value === tab)) ?? RANKS[0];
}
