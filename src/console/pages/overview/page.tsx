/** Figures of many runs: outcomes, durations, scores, costs, and what waits for a human. */
import type { Overview, OverviewUsage, OverviewCouncilDay } from '../../../generated/schemas.js';
import { costText } from '../../../run/cost-text.js';
import { countOf, shortCount } from '../../record/counts.js';
import { lengthText } from '../../record/durations.js';
import { council } from '../../shell/council.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { usePageTitle } from '../../shell/title.js';
import { Facts, Segments } from '../../ui/controls.js';
import { allOf, useResource } from '../../ui/resource.js';
import { Empty, WhenLoaded } from '../../ui/states.js';
import { Table } from '../../ui/table.js';
import { Since, now } from '../../ui/time.js';
import { DayChart } from './day-chart.js';

const RANGES = [
  { value: '7', text: '7 days' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
  { value: '365', text: 'A year' },
] as const;
const DAY_MS = 86_400_000;

interface Found extends Overview {
  /** Names of councils, by id. */
  readonly names: ReadonlyMap<string, string>;
}

/** Whole months shown, this one among them. */
const MONTHS = 12;

export function OverviewPage() {
  usePageTitle('Overview');
  const { value: range } = RANGES.find(({ value }) => value === query.value.get('days')) ?? RANGES[1];
  const found = useResource(`overview ${range}`, (signal) => figuresOf(Number(range), signal));
  return (
    <main id="page" class="overview">
      <div class="page-head">
        <h1>Overview</h1>
        <Segments
          label="Days"
          value={range}
          options={RANGES}
          onChange={(days) => setQuery({ days: days === RANGES[1].value ? null : days })}
        />
      </div>
      <WhenLoaded of={found} what="the figures" lines={8}>
        {(figures) => <Figures figures={figures} />}
      </WhenLoaded>
    </main>
  );
}

async function figuresOf(days: number, signal: AbortSignal): Promise<Found> {
  const from = new Date(now.peek() - (days - 1) * DAY_MS).toISOString().slice(0, 10);
  const [overview, { months }, saved] = await Promise.all([
    council.overview({ from, signal }),
    // The range may begin within a month.
    council.overview({ from: firstMonth(), signal }),
    allOf(council.blueprints.list({ signal })),
  ]);
  const councils = overview.councils.toSorted((one, other) => costOf(other) - costOf(one));
  return { ...overview, councils, months, names: new Map(saved.map(({ id, name }) => [id, name])) };
}

function firstMonth(): string {
  const today = new Date(now.peek());
  return new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1 - MONTHS)).toISOString().slice(0, 10);
}

function costOf({ usage }: Overview['councils'][number]): number {
  return usage.cost_usd ?? 0;
}

function Figures({ figures }: { readonly figures: Found }) {
  const { outcomes, duration } = figures;
  const ended = outcomes.completed + outcomes.failed + outcomes.rejected + outcomes.cancelled;
  return (
    <>
      <Waiting waiting={figures.waiting} />
      {ended === 0 ? (
        <Empty title="No run has ended in this time" />
      ) : (
        <>
          <section class="card stack" aria-labelledby="overview-runs">
            <h2 id="overview-runs">Runs by day</h2>
            <Facts
              facts={[
                ['Ended', ended],
                ['Completed', `${Math.round((100 * outcomes.completed) / ended)} %`],
                ['Median duration', durationText(duration.median_ms)],
                ['95 % within', durationText(duration.p95_ms)],
              ]}
              look="facts-line"
            />
            <DayChart figures={figures} />
          </section>
          <Councils figures={figures} />
        </>
      )}
      <div class="overview-pair">
        <UsageTable
          title="Cost by model"
          head="Model"
          rows={figures.models.map(({ model, usage }) => [model, usage])}
        />
        <UsageTable
          title="Cost by month"
          note="Whole months, not only the days chosen above"
          head="Month"
          rows={figures.months.map(({ month, usage }) => [month, usage])}
        />
      </div>
    </>
  );
}

function durationText(ms: number | null): string {
  return ms === null ? '–' : lengthText(ms);
}

const AGES = ['up to an hour', 'up to a day', 'up to a week', 'longer'] as const;

function Waiting({ waiting: { runs, oldest_since: oldest, ages } }: Pick<Overview, 'waiting'>) {
  return (
    <section class="card stack close" aria-labelledby="overview-waiting">
      <h2 id="overview-waiting">Waiting for a decision</h2>
      {runs === 0 || oldest === null ? (
        <p class="muted">No run waits.</p>
      ) : (
        <>
          <p>
            <a href={pageUrl(['inbox'], { whose: 'all' })}>{countOf(runs, 'run')}</a>, the oldest for{' '}
            <Since at={oldest} />
          </p>
          <Facts facts={ages.map((age, at) => [AGES[at] ?? '', age.runs])} look="facts-line small" />
        </>
      )}
    </section>
  );
}

/** The names of the columns of `UsageCells`. */
const USAGE = ['Tokens in', 'Tokens out', 'Cost'];

function Councils({ figures: { councils, from, to, names } }: { readonly figures: Found }) {
  return (
    <section class="card stack close wide-table" aria-labelledby="overview-councils" tabIndex={0}>
      <h2 id="overview-councils">Councils</h2>
      <p class="small muted">Highest cost first</p>
      <Table
        heads={['Council', 'Runs', 'Mean score', 'Score over time', ...USAGE]}
        numbers={['Runs', 'Mean score', ...USAGE]}
      >
        {councils.map(({ blueprint_id: id, runs, score, days, usage }) => (
          <tr key={id}>
            <th scope="row" class="break">
              <a class="name" href={pageUrl([], { blueprint_id: id ?? 'council' })}>
                {id === null ? 'Built-in' : (names.get(id) ?? id)}
              </a>
            </th>
            <td class="numeric">{runs}</td>
            <td class="numeric">{score === null ? '–' : score.toFixed(1)}</td>
            <td>
              <ScoreLine {...{ days, from, to }} />
            </td>
            <UsageCells usage={usage} />
          </tr>
        ))}
      </Table>
    </section>
  );
}

interface UsageTableProps {
  readonly title: string;
  readonly note?: string;
  readonly head: string;
  readonly rows: readonly (readonly [name: string, usage: OverviewUsage])[];
}

function UsageTable({ title, note, head, rows }: UsageTableProps) {
  if (rows.length === 0) return null;
  return (
    <section class="card stack close wide-table" aria-label={title} tabIndex={0}>
      <h2>{title}</h2>
      {note !== undefined && <p class="small muted">{note}</p>}
      <Table heads={[head, ...USAGE]} numbers={USAGE}>
        {rows.map(([name, usage]) => (
          <tr key={name}>
            <th scope="row" class="break">
              {name}
            </th>
            <UsageCells usage={usage} />
          </tr>
        ))}
      </Table>
    </section>
  );
}

function UsageCells({ usage }: { readonly usage: OverviewUsage }) {
  const { input_tokens: input, output_tokens: output, cost_usd: cost, unpriced_calls: unpriced } = usage;
  const missing = cost === null || unpriced === 0 ? '' : `, ${countOf(unpriced, 'call')} of unknown cost`;
  return (
    <>
      <td class="numeric">{input === null ? 'not reported' : shortCount(input)}</td>
      <td class="numeric">{output === null ? 'not reported' : shortCount(output)}</td>
      <td class="numeric">{cost === null ? 'not reported' : costText(cost) + missing}</td>
    </>
  );
}

const [WIDTH, HEIGHT, MARGIN] = [160, 32, 3];

interface ScoreLineProps {
  readonly days: readonly OverviewCouncilDay[];
  readonly from: string;
  readonly to: string;
}

export function ScoreLine({ days, from, to }: ScoreLineProps) {
  const scored = days.flatMap(({ day, score }) => (score === null ? [] : [{ day, score }]));
  if (scored.length === 0) return <span class="muted small">no scores</span>;
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const points = scored.map(({ day, score }) => ({
    x: MARGIN + (WIDTH - 2 * MARGIN) * (last === first ? 0.5 : (Date.parse(day) - first) / (last - first)),
    y: MARGIN + (HEIGHT - 2 * MARGIN) * (1 - score / 10),
  }));
  const text = scored.map(({ day, score }) => `${day}: ${score.toFixed(1)}`).join(', ');
  return (
    <svg class="score-line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Scores by day: ${text}`}>
      <title>{text}</title>
      <polyline points={points.map(({ x, y }) => `${x},${y}`).join(' ')} />
      {points.map(({ x, y }) => (
        <circle key={x} cx={x} cy={y} r={2} />
      ))}
    </svg>
  );
}
