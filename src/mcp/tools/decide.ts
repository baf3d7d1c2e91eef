/** The tool decide: decides a pause. */
import type { RunResult } from '../../generated/schemas.js';
import { checkOf } from '../../http/body.js';
import type { HttpContext } from '../../http/route.js';
import { decidePause } from '../../http/routes/god-mode.js';
import { actingRequest } from '../acting-request.js';
import { runOutput } from '../run-report.js';
import type { Tool } from '../tool.js';
import { toolOf } from '../tool.js';

/** Decides a pause, as POST /api/councils/run/{run_id}/approve does. */
export function decideTool(http: HttpContext): Tool {
  const bodyIn = checkOf(http.schemas, 'approval-request.json');
  return toolOf(http.schemas, {
    name: 'decide',
    description:
      'Decides the pause of a run: approve, modify or reject. Decide only what the person has decided: show them what ' +
      'waits first. At a pause for the budget, approve needs the new total as budget. The decision is recorded under the ' +
      'name of the key and cannot be taken back.',
    scope: 'approve',
    input: 'decide-call.json',
    output: runOutput(http.schemas),
    isReading: false,
    async call({ run_id: runId, ...sent }, { caller, req }) {
      const request = bodyIn(sent);
      const path = `/api/councils/run/${encodeURIComponent(runId)}/approve`;
      const result = await decidePause(actingRequest(req, path), http, { runId, request, caller });
      // A vote leaves the pause open.
      const expected = result.status === 'paused' ? { expected_seq: sent.expected_seq } : {};
      return { texts: [textOf(result)], structured: { ...result, ...expected } };
    },
  });
}

function textOf({ run_id: runId, status }: RunResult): string {
  if (status === 'failed') return `Run ${runId} is rejected: it has ended.`;
  if (status === 'paused') return `The vote is recorded. Run ${runId} stays paused until enough approvers agree.`;
  return `The decision is recorded: run ${runId} goes on. Call await_run to wait for its end or its next pause.`;
}
