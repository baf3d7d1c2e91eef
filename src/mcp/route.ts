/** POST /mcp: the Model Context Protocol over streamable HTTP, without sessions. */
import type { RouterContext } from '@koa/router';
import { RequestRefused } from '../api/problems.js';
import type { McpAnswer } from '../generated/schemas.js';
import type { Answer } from '../http/answer.js';
import { closedSignal } from '../http/answer.js';
import { bodyOf, startBodyBytes } from '../http/body.js';
import { chunkedBody } from '../http/chunked-body.js';
import type { HttpContext, Route } from '../http/route.js';
import type { Grant } from '../keys/caller.js';
import { serverMaker } from './server.js';
import type { Tool, ToolCall } from './tool.js';
import { awaitRunTool } from './tools/await-run.js';
import { decideTool } from './tools/decide.js';
import { getRunTool } from './tools/await-run.js';
import { listApprovalsTool } from './tools/list-approvals.js';
import { listCouncilsTool } from './tools/list-councils.js';
import { startCouncilTool } from './tools/start-council.js';

/** Answers a message of a client. */
type Serve = (message: unknown, call: ToolCall) => Promise<Response>;

/** The door for assistants and editors. */
export function mcpRoutes(http: HttpContext): readonly Route[] {
  const maxBytes = startBodyBytes(http.maxMaterialBytes);
  const body = bodyOf(http, 'mcp-request.json', { isRequired: true, maxBytes });
  let loading: Promise<Serve> | null = null;
  return [
    {
      method: 'POST',
      path: '/mcp',
      access: 'key',
      name: 'callMcp',
      summary: 'Answers a message of the Model Context Protocol',
      description: 'Streamable HTTP without sessions. A tool needs the scope of the REST route that does the same.',
      tag: 'mcp',
      body,
      success: {
        status: 200,
        description: 'The answer to a request',
        schema: 'mcp-answer.json',
        alsoAs: { 'text/event-stream': { description: 'The same as a server-sent event' } },
      },
      otherSuccess: { status: 202, description: 'A notification is accepted', schema: null, isEmpty: true },
      errors: [
        { status: 400, description: 'The message breaks the protocol', schema: 'mcp-answer.json' },
        { status: 404, description: 'The method is unknown', schema: 'mcp-answer.json' },
        { status: 406, description: 'The client does not accept both media types', schema: 'mcp-answer.json' },
      ],
      async handle(ctx, caller) {
        const read = await body.readToCompare(ctx).catch(unreadable);
        if ('error' in read) return { status: 400, body: read };
        const { sent } = read;
        const serve = await (loading ??= load(http).catch((error: unknown) => {
          loading = null;
          throw error;
        }));
        return await answered(ctx, http, await serve(sent, callIn(ctx, http, caller)));
      },
    },
  ];
}

/** Loads the SDK, which takes a tenth of a second: with the first request, not at the start of the service. */
async function load(http: HttpContext): Promise<Serve> {
  const sdk = await import('@modelcontextprotocol/server');
  const serverFor = serverMaker(sdk, http, toolsOf(http));
  return async (message, call) => {
    let fault: unknown = null;
    const handler = sdk.createMcpHandler(() => serverFor(call), {
      // The comments of a stream keep proxies from closing a connection that waits.
      responseMode: 'sse',
      // The list of tools never changes for a key, so there is nothing to subscribe to.
      maxSubscriptions: 0,
      onerror: (error) => (fault = error),
    });
    const response = await handler.fetch(requestOf(call), { parsedBody: message });
    if (response.status >= 500) throw fault;
    return response;
  };
}

/**
 * The answer of JSON-RPC 2.0, section 5.1, to a message that cannot be read as JSON. Its id is unknown, and so null.
 *
 * @throws any other error again
 */
function unreadable(error: unknown): McpAnswer & Required<Pick<McpAnswer, 'error'>> {
  const [fault] = error instanceof RequestRefused ? (error.data.errors ?? []) : [];
  if (fault?.type !== 'json_invalid') throw error;
  return { jsonrpc: '2.0', id: null, error: { code: PARSE_ERROR, message: `Parse error: ${fault.msg}` } };
}

const PARSE_ERROR = -32_700;

function toolsOf(http: HttpContext): readonly Tool[] {
  const starting = [listCouncilsTool(http), startCouncilTool(http), awaitRunTool(http), getRunTool(http)];
  return [...starting, listApprovalsTool(http), decideTool(http)];
}

/** The call ends with its client and with the caller's grant. */
function callIn({ req, res }: RouterContext, http: HttpContext, caller: Grant): ToolCall {
  return { caller, req, signal: closedSignal(res, caller, http) };
}

/** Headers that the protocol reads. */
const READ: readonly string[] = ['accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

/** The request for the SDK, without its body, which is read already. The host of its address has no meaning. */
function requestOf({ req, signal }: ToolCall): Request {
  const headers = new Headers({ 'Content-Type': 'application/json' });
  for (const name of READ) for (const value of req.headersDistinct[name] ?? []) headers.append(name, value);
  return new Request('http://localhost/mcp', { method: 'POST', headers, signal });
}

async function answered(ctx: RouterContext, http: HttpContext, response: Response): Promise<Answer> {
  const { status, body } = response;
  const type = response.headers.get('Content-Type');
  if (body === null || type === null) return { status, body: null };
  if (!type.startsWith('text/event-stream')) return { status, type, body: await response.text() };
  const headers = { 'Content-Type': type, 'X-Accel-Buffering': 'no' };
  return { status, headers, body: chunkedBody(buffersIn(body), { http, response: ctx.res }) };
}

/** The bytes of a stream, after a comment that leaves at once, because the SDK sends its first comment after 15 s. */
async function* buffersIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Buffer> {
  yield Buffer.from(':\n\n');
  for await (const bytes of body) yield Buffer.from(bytes);
}
