/** The scores of critics over time, and the score from which a draft passes. */
import type { PassScore } from '../../record/pass-scores.js';
import { passScoreOf, passScoreText } from '../../record/pass-scores.js';
import type { Landmark } from '../../record/landmarks.js';
import type { RunStore } from './store.js';

const HEIGHT = 104;
/** The axis starts at this score, or lower if a score is lower. */
const LOWEST = 5;
/** Largest number of scores with a number, and with a mark; beyond it, there is only the line. */
const [MOST_NUMBERS, MOST_MARKS] = [12, 200];

interface Point {
  readonly stop: Landmark;
  readonly x: string;
  readonly y: number;
  readonly isPassed: boolean;
}

/** A critic with its scores. */
interface Critic {
  readonly id: string;
  readonly label: string;
  readonly pass: PassScore | null;
}

export function Scores({ store }: { readonly store: RunStore }) {
  const scores = store.landmarks.value.filter(({ kind }) => kind === 'score');
  if (scores.length === 0) return null;
  const { value: shown } = store.shown;
  const critics = criticsOf(store, scores);
  const passes = critics.flatMap(({ pass }) => (pass === null ? [] : [pass.score]));
  const lowest = Math.max(
    0,
    Math.min(LOWEST, ...[...scores.map(scoreOf), ...passes].map((each) => Math.floor(each) - 1)),
  );
  const placeY = (score: number): number => 18 + ((10 - score) / (10 - lowest)) * (HEIGHT - 38);
  const points = scores.map((stop, index): Point => {
    const isPassed = isPassing(scoreOf(stop), critics.find(({ id }) => id === stop.node)?.pass ?? null);
    return { stop, isPassed, x: placeX(index, scores.length), y: placeY(scoreOf(stop)) };
  });
  return (
    <figure class="scores">
      <figcaption>
        <h2>Scores</h2>
        <p class="small muted">{critics.map(criticText).join(' · ')}</p>
      </figcaption>
      <svg height={HEIGHT} role="img" aria-label={scoresInWords(scores, critics)}>
        {[...new Set(passes)].map((pass) => (
          <g key={pass}>
            <line class="passing" x1="0" x2="100%" y1={placeY(pass)} y2={placeY(pass)} />
            <text x="0" y={placeY(pass) - 4}>
              {pass}
            </text>
          </g>
        ))}
        {critics.flatMap(({ id }) => curveOf(points.filter(({ stop }) => stop.node === id)))}
        {points.length <= MOST_MARKS &&
          points.map((point) => <Mark key={point.stop.seq} {...{ point, points, shown }} />)}
      </svg>
    </figure>
  );
}

function criticsOf(store: RunStore, scores: readonly Landmark[]): readonly Critic[] {
  const run = store.record.stateAt(store.head.value);
  const ids = [...new Set(scores.map(({ node }) => node ?? ''))];
  return ids.map((id) => ({ id, label: store.labelOf(id), pass: run === null ? null : passScoreOf(run, id) }));
}

function criticText({ label, pass }: Critic): string {
  return pass === null ? `by ${label}` : `by ${label}, ${passScoreText(pass)} passes a draft`;
}

function isPassing(score: number, pass: PassScore | null): boolean {
  if (pass === null) return false;
  return pass.isExclusive ? score > pass.score : score >= pass.score;
}

function curveOf(points: readonly Point[]) {
  return points.slice(1).map(({ stop, x, y }, index) => {
    const from = points[index];
    return <line key={stop.seq} class="curve" x1={from?.x} y1={from?.y} x2={x} y2={y} />;
  });
}

interface MarkProps {
  readonly point: Point;
  readonly points: readonly Point[];
  /** The event shown: later marks are pale. */
  readonly shown: number;
}

function Mark({ point: { stop, x, y, isPassed }, points, shown }: MarkProps) {
  return (
    <g class={`${isPassed ? 'passed' : ''}${stop.seq > shown ? ' later' : ''}`}>
      <circle cx={x} cy={y} r="4">
        <title>{stop.score}</title>
      </circle>
      {points.length <= MOST_NUMBERS && (
        <text x={x} y={isPassed ? y - 8 : y + 17} text-anchor="middle">
          {stop.score}
        </text>
      )}
    </g>
  );
}

function scoreOf({ score }: Landmark): number {
  return score ?? 0;
}

function placeX(index: number, count: number): string {
  return `${count === 1 ? 50 : 6 + (index / (count - 1)) * 88}%`;
}

/** The last scores as text for assistive technology. */
function scoresInWords(scores: readonly Landmark[], critics: readonly Critic[]): string {
  const last = scores.slice(-20);
  const earlier = scores.length > last.length ? `the last ${last.length} of ${scores.length}: ` : '';
  const labels = new Map(critics.map(({ id, label }) => [id, label]));
  const words = last.map(({ node, score }) => `${labels.get(node ?? '') ?? ''} ${score ?? ''}`);
  return `Scores: ${earlier}${words.join(', ')}. ${critics.map(criticText).join('; ')}.`;
}
