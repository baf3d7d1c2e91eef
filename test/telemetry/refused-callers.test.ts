import { expect } from 'chai';
import { refusedUpgrade } from '../support/channel-client.js';
import { addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import { MCP_ACCEPT, toolCall } from '../support/mcp-client.js';
import { parseMetrics } from '../support/prometheus-text.js';
import { startService } from '../support/running-service.js';

const UNKNOWN = `council_${'x'.repeat(43)}`;
const PASS = 'y'.repeat(43);

describe('Refused callers', () => {
  it('are counted by reason and status at every door, and logged once for each address and minute', async () => {
    const service = await startService({ trustedProxies: ['127.0.0.1'] });
    try {
      const { url } = service;
      const root = await addFirstKey(url);
      const admin = restWith(url, root);
      const reader = await addKey(admin, { name: 'reader', scopes: ['read'] });
      const gone = await addKey(admin, { name: 'gone', scopes: ['read'] });
      await admin.send('DELETE', '/api/keys/gone');

      let address = '192.0.2.1';
      const from = (): Readonly<Record<string, string>> => ({ 'X-Forwarded-For': address });
      const send = async (path: string, headers: Readonly<Record<string, string>> = {}, body?: object) => {
        const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
        const json = { 'Content-Type': 'application/json', ...MCP_ACCEPT };
        return (await fetch(url + path, { ...sent, headers: { ...json, ...from(), ...headers } })).status;
      };
      const statuses = [
        await send('/api/runs/'),
        await send('/v1/models', bearer(UNKNOWN)),
        await send('/mcp', bearer(UNKNOWN), toolCall('list_councils', {})),
        await send('/metrics', bearer(UNKNOWN)),
        await send('/api/session', {}, { key: UNKNOWN }),
        (await refusedUpgrade(url, '/ws/council/x', { ...from(), ...bearer(UNKNOWN) })).status,
        await send(`/api/feed?ticket=${PASS}`),
        await send('/api/runs/', { Cookie: `council_session=${PASS}` }),
        await send('/api/councils/run', bearer(reader), { input_topic: 'Trees' }),
        await send('/api/councils/run', { Cookie: `council_session=${PASS}` }, { input_topic: 'Trees' }),
        await send('/mcp', bearer(reader), toolCall('start_council', { topic: 'Trees' })),
      ];
      expect(statuses).to.deep.equal([401, 401, 401, 401, 401, 401, 401, 401, 403, 403, 200]);
      address = '192.0.2.2';
      for (let count = 0; count < 11; count += 1) await send('/api/runs/', bearer(gone));

      const page = await (await fetch(`${url}/metrics`, { headers: bearer(reader) })).text();
      const samples = parseMetrics(page).get('council_access_refused_total')?.samples ?? [];
      const counted = samples.map(({ labels, value }) => `${labels['reason']} ${labels['status']} ${value}`);
      expect(counted).to.have.members([
        ...['key_missing 401 1', 'key_unknown 401 5', 'key_revoked 401 10', 'key_expired 401 0', 'failures 429 1'],
        ...['session_unknown 401 1', 'session_revoked 401 0', 'session_expired 401 0'],
        ...['ticket_unknown 401 1', 'ticket_revoked 401 0', 'ticket_expired 401 0', 'origin 403 1', 'scope 403 2'],
      ]);
      const lines = service.lines.filter(({ msg }) => msg.startsWith('access: refused'));
      expect(lines.map(({ msg: _, ...fields }) => fields)).to.deep.equal([
        { address: '192.0.2.1', reason: 'key_missing', status: 401 },
        { address: '192.0.2.2', reason: 'key_revoked', status: 401, key: 'gone' },
      ]);
    } finally {
      await service.stop();
    }
  });
});
