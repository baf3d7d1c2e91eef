/** What the service reports about itself: its version, its log and the prices of models. */
import { stat } from 'node:fs/promises';
import type { AboutLog, PriceList } from '../generated/schemas.js';
import type { EventLog } from '../eventlog/port.js';
import type { PriceTable } from '../models/prices.js';
import { perMillion } from '../models/prices.js';

/** @param file of the embedded log, or null if a server keeps the log */
export async function aboutLog(log: Pick<EventLog, 'head'>, file: string | null): Promise<AboutLog> {
  const position = await log.head().catch(() => null);
  if (file === null) return { kind: 'eventstoredb', position, bytes: null };
  // Newer events are in the write-ahead file.
  const sizes = await Promise.all([file, `${file}-wal`].map(sizeOf));
  return { kind: 'embedded', position, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

/** The prices that the service charges for calls: a cached token without a price of its own costs as much as another one. */
export function priceList(prices: PriceTable): PriceList {
  return prices.models().flatMap((model) => {
    const [price, origin] = [prices.priceOf(model), prices.sourceOf(model)];
    if (price === null || origin === null) return [];
    const { input, output, cacheRead, cacheWrite } = price;
    return [
      {
        model,
        input_usd: perMillion(input),
        output_usd: perMillion(output),
        cache_read_usd: perMillion(cacheRead ?? input),
        cache_write_usd: perMillion(cacheWrite ?? input),
        table: origin.table,
        source: origin.source,
        read_at: origin.readAt,
      },
    ];
  });
}
