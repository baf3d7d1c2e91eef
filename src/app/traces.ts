/** Exports the traces of the runs that end in this instance. */
import type { CollectorSettings } from '../config.js';
import { retryWhileUnavailable } from '../eventlog/port.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import { collector } from '../telemetry/collector.js';
import { HeldTraces } from '../telemetry/held-traces.js';
import { traceIn } from '../telemetry/spans.js';
import type { TraceExporterDeps } from '../telemetry/trace-exporter.js';
import { TraceExporter } from '../telemetry/trace-exporter.js';
import type { Context } from './context.js';

/** Starts to export, or returns null without a collector. */
export function exportTraces(
  { states, reader }: Context,
  settings: CollectorSettings | null,
  { system, logger }: { readonly system: System; readonly logger: Logger },
): TraceExporter | null {
  if (settings === null) return null;
  const held = new HeldTraces(system.sha256);
  const traceOf: TraceExporterDeps['traceOf'] = async (runId, signal) =>
    held.take(runId) ??
    (await retryWhileUnavailable(() => traceIn(runId, reader.events(runId), system.sha256), { system, signal }));
  const { delayMs } = settings;
  const exporter = new TraceExporter({
    send: collector(settings),
    delayMs,
    traceOf,
    forget: (runId) => held.forget(runId),
    system,
    logger,
  });
  states.subscribe(held, exporter);
  return exporter;
}
