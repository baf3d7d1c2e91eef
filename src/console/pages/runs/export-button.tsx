/** Saves runs of the list as a file. */
import { council } from '../../shell/council.js';
import { query } from '../../shell/router.js';
import { toastError } from '../../shell/toasts.js';
import { Button } from '../../ui/controls.js';
import { save } from '../run/files.js';
import { filtersIn } from './filters.js';

/** Most runs in an export of chosen ones. */
export const MOST_CHOSEN = 200;

interface ExportButtonProps {
  /** Default: all runs of the list, loaded or not. */
  readonly ids?: readonly string[];
  readonly format: 'csv' | 'ndjson';
}

export function ExportButton({ ids, format }: ExportButtonProps) {
  async function exportRuns(): Promise<void> {
    const bytes = await council.runs.export({ ...(ids === undefined ? filtersIn(query.value) : { ids }), format });
    save(`runs.${format}`, new Blob([new Uint8Array(bytes)]));
  }
  return <Button onClick={() => void exportRuns().catch(toastError)}>Export {format.toUpperCase()}</Button>;
}
