/** A judge's comparison as five lists, with the labels of members in place of letters. */
import type { ComponentChildren } from 'preact';
import type { Analysis } from '../../../../generated/schemas.js';
import { withNames } from './with-names.js';

export interface AnalysisViewProps {
  readonly analysis: Analysis;
  /** The labels behind the letters that the judge was shown. */
  readonly labels: ReadonlyMap<string, string>;
}

export function AnalysisView({ analysis, labels }: AnalysisViewProps) {
  const nameOf = (letter: string): string => labels.get(letter) ?? letter;
  const named = (text: string): string => withNames(text, labels);
  const { consensus, contradictions, partial_coverage: partial, unique_insights: insights } = analysis;
  return (
    <div class="analysis">
      <List title="Consensus" items={consensus.map(named)} />
      <List
        title="Contradictions"
        items={contradictions.map(({ topic, stances }) => (
          <>
            {named(topic)}
            <ul class="marked">
              {stances.map(({ response, stance }, index) => (
                <li key={index}>
                  <strong>{nameOf(response)}</strong>: {named(stance)}
                </li>
              ))}
            </ul>
          </>
        ))}
      />
      <List
        title="Partial coverage"
        items={partial.map(({ responses, point }) => (
          <>
            {named(point)} <span class="muted small">only {responses.map(nameOf).join(', ')}</span>
          </>
        ))}
      />
      <List
        title="Unique insights"
        items={insights.map(({ response, insight }) => (
          <>
            <strong>{nameOf(response)}</strong>: {named(insight)}
          </>
        ))}
      />
      <List title="Blind spots" items={analysis.blind_spots.map(named)} />
      {labels.size > 0 && (
        <p class="muted small">
          The judge saw no names: {[...labels].map(([letter, label]) => `Response ${letter} was ${label}`).join(', ')}.
        </p>
      )}
    </div>
  );
}

function List({ title, items }: { readonly title: string; readonly items: readonly ComponentChildren[] }) {
  return (
    <section aria-label={title}>
      <h4>{title}</h4>
      {items.length === 0 ? (
        <p class="muted small">None</p>
      ) : (
        <ul class="marked break">
          {items.map((item, index) => (
            <li key={index}>{item}</li>
          ))}
        </ul>
      )}
    </section>
  );
}
