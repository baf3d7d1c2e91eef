/** What a run resulted in beside its draft. Loads with the first of these views. */
import type { ComponentType } from 'preact';
import { Changes } from './changes.js';
import { Deliberation } from './deliberation.js';
import { Feedback } from './feedback.js';
import { Sources } from './source-list.js';
import type { RunStore } from './store.js';
import type { ResultTab } from './tabs.js';

/** By tab. */
export const VIEWS: Readonly<Record<Exclude<ResultTab, 'draft'>, ComponentType<{ readonly store: RunStore }>>> = {
  changes: Changes,
  feedback: Feedback,
  deliberation: Deliberation,
  sources: Sources,
};
