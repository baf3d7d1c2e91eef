/** The list of runs as a table with only visible lines; on a phone, each line is a card. */
import type { Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { lengthText } from '../../record/durations.js';
import { withoutMarks } from '../../record/plain-draft.js';
import { excerpt } from '../../record/counts.js';
import { pageUrl } from '../../shell/router.js';
import { Badge, Status } from '../../ui/controls.js';
import { Loading } from '../../ui/states.js';
import { Ago, Since } from '../../ui/time.js';
import { usePageWindow } from '../../ui/windowed.js';
import type { RunList } from './run-list.js';
import type { RunRow } from './run-row.js';
import { isOver, usageTexts } from './run-row.js';

/** Height of a line before the first render, in pixels. */
const LINE_PX = 58;
/** Longest topic, in characters. */
const TOPIC_CHARS = 240;
/** Loads the next page at this number of lines before the end. */
const READ_ON = 40;

export interface RunTableProps {
  readonly list: RunList;
  /** Names of blueprints, by id. */
  readonly names: ReadonlyMap<string, string>;
  /** Whether the service has keys, so that runs have an actor. */
  readonly hasActors: boolean;
  /** Ids of the runs selected for comparison, at most two. */
  readonly chosen: Signal<readonly string[]>;
}

export function RunTable({ list, names, hasActors, chosen }: RunTableProps) {
  const rows = list.rows.value;
  const state = list.state.value;
  const { ref, from, to, beforePx, afterPx, isTop } = usePageWindow<HTMLTableSectionElement>(rows.length, LINE_PX);
  useEffect(() => {
    list.setVisibleRows({ from, to, isTop });
    if (to > rows.length - READ_ON) list.more();
  }, [list, from, to, isTop, rows.length, state]);
  return (
    <>
      <table class="table runs" role="table" aria-rowcount={(list.total.value ?? rows.length) + 1} aria-label="Runs">
        <thead role="rowgroup">
          <tr role="row" aria-rowindex={1}>
            <th role="columnheader" class="choose">
              <span class="unseen">Compare</span>
            </th>
            {columns(hasActors).map((name) => (
              <th key={name} role="columnheader" class={name.toLowerCase().replace(' ', '-')}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={ref} role="rowgroup">
          <Space px={beforePx} />
          {rows.slice(from, to).map((row, at) => (
            <Line
              key={row.peek().id}
              index={from + at + 2}
              row={row}
              names={names}
              hasActors={hasActors}
              chosen={chosen}
            />
          ))}
          <Space px={afterPx} />
        </tbody>
      </table>
      {state === 'loading' && <Loading what="runs" />}
    </>
  );
}

function columns(hasActors: boolean): readonly string[] {
  const [before, after] = [
    ['Topic', 'Status', 'Council', 'Score', 'Iterations', 'Tokens, cost'],
    ['Started', 'Duration'],
  ];
  return [...before, ...(hasActors ? ['Started by'] : []), ...after];
}

/** Space for lines that are not rendered. */
function Space({ px }: { readonly px: number }) {
  return px === 0 ? null : <tr aria-hidden="true" class="space" style={{ height: `${px}px` }} />;
}

interface LineProps extends Pick<RunTableProps, 'names' | 'hasActors' | 'chosen'> {
  readonly row: Signal<RunRow>;
  readonly index: number;
}

function Line({ row, index, names, hasActors, chosen }: LineProps) {
  const run = row.value;
  const { id, topic, blueprintId, score, iterations } = run;
  const words = excerpt(withoutMarks(topic), TOPIC_CHARS);
  const isChosen = chosen.value.includes(id);
  const council = blueprintId === null ? 'Built-in' : (names.get(blueprintId) ?? blueprintId);
  const choose = (): void => {
    const others = chosen.value.filter((each) => each !== id);
    chosen.value = isChosen ? others : [...others, id].slice(-2);
  };
  return (
    <tr role="row" data-line aria-rowindex={index} aria-selected={isChosen}>
      <td role="cell" class="choose">
        <label>
          <input type="checkbox" checked={isChosen} aria-label={`Select to compare: ${words}`} onChange={choose} />
        </label>
      </td>
      <td role="cell" class="topic">
        <a class="clamp" href={pageUrl(['runs', id])} title={topic}>
          {words}
        </a>
      </td>
      <td role="cell" class="status">
        <Status status={run.status} error={run.error} />
        <Note run={run} />
      </td>
      <td role="cell" class="council">
        <span class="clip" title={council}>
          {council}
        </span>
        {run.isGodMode && <Badge flat>God Mode</Badge>}
      </td>
      <td role="cell" class="score numeric" data-label="Score">
        {score ?? '–'}
      </td>
      <td role="cell" class="iterations numeric" data-label="Drafts">
        {iterations ?? '–'}
      </td>
      <td role="cell" class="tokens numeric">
        <Usage run={run} />
      </td>
      {hasActors && (
        <td role="cell" class="started-by clip" data-label="By" title={run.actor ?? undefined}>
          {run.actor ?? '–'}
        </td>
      )}
      <td role="cell" class="started">
        {run.createdAt === null ? '–' : <Ago at={run.createdAt} />}
      </td>
      <td role="cell" class="duration numeric" data-label="Took">
        <Duration run={run} />
      </td>
    </tr>
  );
}

function Duration({ run }: { readonly run: RunRow }) {
  const { createdAt, durationMs } = run;
  if (durationMs !== null) return <>{lengthText(durationMs)}</>;
  return isOver(run) || createdAt === null ? <>–</> : <Since at={createdAt} />;
}

/** The time it waits, or its error. */
function Note({ run: { waitingSince, error } }: { readonly run: RunRow }) {
  if (waitingSince !== null) {
    return (
      <span class="note">
        for <Since at={waitingSince} />
      </span>
    );
  }
  return error === null ? null : (
    <span class="note clip" title={error}>
      {error}
    </span>
  );
}

function Usage({ run }: { readonly run: RunRow }) {
  const [first, cost] = usageTexts(run);
  if (cost === undefined) return <>{first}</>;
  return (
    <>
      <span>{first}</span> <span class="cost">{cost}</span>
    </>
  );
}
