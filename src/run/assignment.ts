/** Attempts as the actor makes them: their names, and what each is to do. */
import type { RenderedBrief } from '../council/brief.js';
import type { Brief } from '../model/port.js';
import type { FrontNode } from './state.js';

/** What an attempt is to do. */
export interface Assignment {
  readonly brief: Brief;
  /** The brief as the model is told it. */
  readonly told: RenderedBrief;
}

/** One call of a run: an attempt of a step. */
export function callOf({ step, attempt }: Pick<FrontNode, 'step' | 'attempt'>): string {
  return `${step}.${attempt}`;
}
