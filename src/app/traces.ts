/** Exports the traces of the runs that end in this instance. */
import type { CollectorSettings } from '../config.js';
import { retryWhileUnavailable } from '../eventsourcing/append-with-retry.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import { collector } from '../telemetry/collector.js';
import { traceIn } from '../telemetry/spans.js';
import { TraceExporter } from '../telemetry/trace-exporter.js';
import type { Context } from './context.js';

/** Starts to export, or returns null without a collector. */
export function exportTraces(
  { ownAppends, reader }: Context,
  settings: CollectorSettings | null,
  { system, logger }: { readonly system: System; readonly logger: Logger },
): TraceExporter | null {
  if (settings === null) return null;
  const traceOf: ConstructorParameters<typeof TraceExporter>[0]['traceOf'] = (runId, signal) =>
    retryWhileUnavailable(() => traceIn(runId, reader.events(runId), system.sha256), { system, signal });
  const exporter = new TraceExporter({ send: collector(settings, fetch), traceOf, system, logger });
  ownAppends.subscribe(exporter);
  return exporter;
}
