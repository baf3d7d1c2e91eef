/** What members, reviewers and judges said in a run, up to the event shown. Loads with the first such step. */
import { countOf } from '../../../record/counts.js';
import { executionText, membersText } from '../../../record/event-text.js';
import type { Execution, ExecutionTrace, PanelExecution } from '../../../record/executions.js';
import { labelsByLetter } from '../../../record/executions.js';
import { roleName } from '../../../record/page-words.js';
import { Badge } from '../../../ui/controls.js';
import { Prose } from '../../../ui/prose.js';
import { dateTimeText } from '../../../ui/time.js';
import { EXECUTION_TONES } from '../execution-tones.js';
import type { RunStore } from '../store.js';
import { AnalysisView } from './analysis.js';
import { Jury } from './jury.js';
import { Members } from './members.js';
import { Ranking } from './ranking.js';

interface PartProps {
  readonly store: RunStore;
  readonly execution: Execution;
}

/** All panels, ranks, juries and judges of a run. The latest execution of each node is open at first. */
export function DeliberationView({ store, trace }: { readonly store: RunStore; readonly trace: ExecutionTrace }) {
  const parts = trace.executions.filter(({ panel, role }) => panel !== null || role === 'judge');
  const latest = new Set(new Map(parts.map((each) => [each.node, each.step])).values());
  return (
    <>
      {trace.keptAnswers.map((panel) => (
        <details key={panel.panelStep} class="deliberation-part">
          <summary>
            <h3>{store.labelOf(panel.node)}</h3>
            <Badge tone="good">inherited</Badge>
            <span class="muted small">{countOf(panel.answers.length, 'answer')} kept from the parent run</span>
          </summary>
          <Answers answers={panel.answers} />
        </details>
      ))}
      {parts.map((execution) => (
        <details key={execution.step} class="deliberation-part" open={latest.has(execution.step)}>
          <summary>
            <h3>{execution.label}</h3>
            <Badge tone={EXECUTION_TONES[execution.state]}>{executionText(execution.state)}</Badge>
            <span class="muted small">
              {roleName(execution.role, execution.panel !== null)}, step {execution.step}
              {execution.panel !== null && ` · ${membersText(execution.panel.members.map(({ state }) => state))}`}
            </span>
          </summary>
          <div class="stack">
            <PartView {...{ store, execution }} />
          </div>
        </details>
      ))}
    </>
  );
}

/** The result of one panel, rank, jury or judge, and its members. */
export function PartView({ store, execution }: PartProps) {
  const { panel, output } = execution;
  if (panel !== null) return <PanelView {...{ store, execution, panel }} />;
  const value = output?.value;
  if (value === undefined || !('analysis' in value)) return null;
  return <AnalysisView analysis={value.analysis} labels={labelsByLetter(execution)} />;
}

function PanelView({ store, execution, panel }: PartProps & { readonly panel: PanelExecution }) {
  const { members, quorum, closed } = panel;
  const result = closed?.result ?? null;
  return (
    <>
      {closed === null && quorum !== null && (
        <p class="small">
          The quorum has answered. The other members have until{' '}
          <time datetime={quorum.until}>{dateTimeText(quorum.until)}</time>.
        </p>
      )}
      {result !== null && 'points' in result && <Ranking {...{ execution, result }} reviewers={members} />}
      {execution.role === 'critic' && (
        <Jury label={execution.label} members={members} result={result !== null && 'score' in result ? result : null} />
      )}
      <Members {...{ store, execution }} />
    </>
  );
}

/** The answers of a panel in the parent of a fork. */
export function Answers({ answers }: { readonly answers: ExecutionTrace['keptAnswers'][number]['answers'] }) {
  return (
    <ul class="members">
      {answers.map(({ member, label, model, text }) => (
        <li key={member}>
          <details>
            <summary>
              <span class="member-name">{label}</span> <span class="muted small break">{model}</span>
            </summary>
            <Prose text={text} />
          </details>
        </li>
      ))}
    </ul>
  );
}
