/** The official client of the Model Context Protocol. It checks each result against the tool's output schema. */
import type { CallToolResult, Tool } from '@modelcontextprotocol/client';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect } from 'chai';
import { bearer } from './keys.js';

/** The protocol with its handshake (2025), and the one without (2026). */
export type Era = 'legacy' | 'auto';

/** For a message that a test sends by hand. */
export const MCP_ACCEPT = { Accept: 'application/json, text/event-stream' };

/** The `_meta` of each message without a handshake. */
export const MCP_MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The message that calls a tool. */
export function toolCall(name: string, args: object) {
  return { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name, arguments: args } };
}

export interface McpClient {
  tools(): Promise<readonly Tool[]>;
  /** The result of a call, which must succeed. */
  call(tool: string, args?: Record<string, unknown>): Promise<Called>;
  /** The text of a call's error. */
  refusal(tool: string, args?: Record<string, unknown>): Promise<string>;
  close(): Promise<void>;
}

export interface Called {
  readonly text: string;
  readonly structured: unknown;
}

export async function mcpClient(
  url: string,
  { key, era = 'legacy' }: { key?: string; era?: Era } = {},
): Promise<McpClient> {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: era } });
  const requestInit = { headers: key === undefined ? {} : bearer(key) };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  await client.listTools();
  const result = (name: string, args: Record<string, unknown>): Promise<CallToolResult> =>
    client.callTool({ name, arguments: args });
  return {
    tools: async () => (await client.listTools()).tools,
    async call(tool, args = {}) {
      const called = await result(tool, args);
      expect(called.isError, textOf(called)).not.to.equal(true);
      return { text: textOf(called), structured: called.structuredContent };
    },
    async refusal(tool, args = {}) {
      const called = await result(tool, args);
      expect(called.isError, textOf(called)).to.equal(true);
      return textOf(called);
    },
    close: () => client.close(),
  };
}

function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
}
