/** The scores of critics over time, and the score from which a draft passes. */
import type { RunStore, Landmark } from './store.js';

/** `PASS_SCORE` in graph/limits.ts. */
const PASSING = 8;
const HEIGHT = 104;
/** The axis starts at this score, or lower if a score is lower. */
const LOWEST = 5;
/** Largest number of scores with a number, and with a mark; beyond it, there is only the line. */
const [MOST_NUMBERS, MOST_MARKS] = [12, 200];

export function Scores({ store }: { readonly store: RunStore }) {
  const scores = store.landmarks.value.filter(({ kind }) => kind === 'score');
  if (scores.length === 0) return null;
  const { value: shown } = store.shown;
  const critics = [...new Set(scores.map(({ node }) => node))];
  const lowest = Math.max(0, Math.min(LOWEST, ...scores.map(({ score }) => Math.floor(score ?? 0) - 1)));
  const placeY = (score: number): number => 18 + ((10 - score) / (10 - lowest)) * (HEIGHT - 38);
  const points = scores.map((stop, index) => ({ stop, x: placeX(index, scores.length), y: placeY(stop.score ?? 0) }));
  return (
    <figure class="scores">
      <figcaption class="row spread">
        <h2>Scores</h2>
        <span class="small muted">
          by {critics.map((critic) => store.labelOf(critic ?? '')).join(', ')} · {PASSING} passes a draft
        </span>
      </figcaption>
      <svg height={HEIGHT} role="img" aria-label={scoresInWords(scores)}>
        <line class="passing" x1="0" x2="100%" y1={placeY(PASSING)} y2={placeY(PASSING)} />
        <text x="0" y={placeY(PASSING) - 4}>
          {PASSING}
        </text>
        {critics.flatMap((critic) => {
          const own = points.filter(({ stop }) => stop.node === critic);
          return own.slice(1).map(({ stop, x, y }, index) => {
            const from = own[index];
            return <line key={stop.seq} class="curve" x1={from?.x} y1={from?.y} x2={x} y2={y} />;
          });
        })}
        {points.length <= MOST_MARKS &&
          points.map(({ stop, x, y }) => (
            <g
              key={stop.seq}
              class={`${(stop.score ?? 0) >= PASSING ? 'passed' : ''}${stop.seq > shown ? ' later' : ''}`}
            >
              <circle cx={x} cy={y} r="4">
                <title>{wordsOf(stop)}</title>
              </circle>
              {points.length <= MOST_NUMBERS && (
                <text x={x} y={(stop.score ?? 0) >= PASSING ? y - 8 : y + 17} text-anchor="middle">
                  {stop.score}
                </text>
              )}
            </g>
          ))}
      </svg>
    </figure>
  );
}

function placeX(index: number, count: number): string {
  return `${count === 1 ? 50 : 6 + (index / (count - 1)) * 88}%`;
}

function wordsOf({ node, score }: Landmark): string {
  return `${node ?? ''} ${score ?? ''}`;
}

/** The last scores as text for assistive technology. */
function scoresInWords(scores: readonly Landmark[]): string {
  const last = scores.slice(-20);
  const earlier = scores.length > last.length ? `the last ${last.length} of ${scores.length}: ` : '';
  return `Scores: ${earlier}${last.map(wordsOf).join(', ')}. ${PASSING} passes a draft.`;
}
