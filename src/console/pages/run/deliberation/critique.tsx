/** The score and the feedback of a critic or of a member of a jury. */
import { Prose } from '../../../ui/prose.js';

export function Critique({ score, feedback }: { readonly score: number; readonly feedback: string }) {
  return (
    <>
      <p>
        Scored <strong>{score}</strong> of 10
      </p>
      {feedback.trim() !== '' && (
        <blockquote>
          <Prose text={feedback} />
        </blockquote>
      )}
    </>
  );
}
