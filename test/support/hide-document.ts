/** The deletion of a document by a version before the ledger: an event that hides the texts. */
import type { DocumentFact } from '../../src/documents/events.js';
import { documentStream } from '../../src/documents/events.js';
import { changeAggregate, headAt } from '../../src/eventsourcing/aggregate.js';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import { lastEvent } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';

export async function hideDocument(log: EventLog, documentId: string): Promise<void> {
  const stream = documentStream(documentId);
  await changeAggregate<RecordedEvent | null, DocumentFact>(
    { log, system: nodeSystem(), instanceId: 'earlier' },
    {
      stream,
      subject: stream,
      read: () => lastEvent(log, stream),
      headOf: (last) => last && headAt(last),
      decide: () => [{ type: 'DocumentDeleted', data: { actor: null } }],
    },
    new AbortController().signal,
  );
}
