/** The tool start_council: starts a run. */
import { BlueprintUnknown } from '../../blueprint/errors.js';
import { isBlueprintId } from '../../blueprint/record.js';
import type { StartCouncilCall } from '../../generated/schemas.js';
import { checkOf } from '../../http/body.js';
import type { RunIdentity, BuiltRequest } from '../../http/starts.js';
import { IDEMPOTENCY_KEY, startRunOnce } from '../../http/starts.js';
import type { HttpContext } from '../../http/route.js';
import { buildBlueprintRequest, builtInCouncil } from '../../http/routes/runs.js';
import { inlinedSchema } from '../inlined-schema.js';
import { actingRequest } from '../acting-request.js';
import type { Tool } from '../tool.js';
import { toolOf } from '../tool.js';

/** Starts a run, as POST /api/councils/run and POST /api/councils/{blueprint_id}/run do. */
export function startCouncilTool(http: HttpContext): Tool {
  const bodyIn = checkOf(http.schemas, 'run-request.json');
  const builtIn = builtInCouncil(http);
  return toolOf(http.schemas, {
    name: 'start_council',
    description:
      'Starts a council of language models on a topic and returns the run_id at once. The run takes minutes: then call ' +
      'await_run until it is completed or paused. With god_mode a saved council pauses before each node for a person to ' +
      'decide. A budget bounds what it may cost. Put a long text to work on into material, not into topic. With an ' +
      'output_schema the completed run has final_output, JSON that is valid by it.',
    scope: 'run',
    input: 'start-council-call.json',
    output: inlinedSchema(http.schemas, 'run-start.json'),
    isReading: false,
    async call({ council, topic, idempotency_key: key, ...options }, { caller, req }) {
      if (council !== undefined && !isBlueprintId(council)) throw new BlueprintUnknown({ blueprintId: council });
      const body = bodyIn({ input_topic: topic, ...options });
      const buildRequest = (run: RunIdentity): BuiltRequest | Promise<BuiltRequest> =>
        council === undefined
          ? builtIn(run, body.value)
          : buildBlueprintRequest(http, { run, body: body.value, blueprintId: council });
      const request = actingRequest(req, pathOf(council), key === undefined ? {} : { [IDEMPOTENCY_KEY]: key });
      const { body: started } = await startRunOnce(request, http, { body, caller, matter: body.value, buildRequest });
      const isIgnored = council === undefined && options.god_mode === true;
      const text = `Run ${started.run_id} has started. Call await_run with this run_id and timeout_s 50.`;
      return { texts: [isIgnored ? `${text} ${NO_PAUSES}` : text], structured: { ...started } };
    },
  });
}

/** The assistant must not wait for a pause, or leave the person to believe that one will come. */
const NO_PAUSES = 'The built-in council ignores god_mode: it does not pause. For pauses, start a saved council.';

/** The path of the same start by REST: the same idempotency key there gives the same run. */
function pathOf(council: StartCouncilCall['council']): string {
  return council === undefined ? '/api/councils/run' : `/api/councils/${encodeURIComponent(council)}/run`;
}
