import type { HistoryRecord } from '../generated/schemas.js';

/** The topic, after the title of its item for a run that a council has started: the runs of a council may share a topic. */
export function titledTopic({
  input_topic: topic,
  parent_run: parent,
}: Pick<HistoryRecord, 'input_topic' | 'parent_run'>): string {
  return parent?.title === undefined ? topic : `${parent.title} · ${topic}`;
}
