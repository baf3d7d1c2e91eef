import { expect } from 'chai';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const LISTED = 'https://app.example';
const PREFLIGHT = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type' };

describe('Cross-origin access', () => {
  let service: RunningService;
  let rest: RestClient;

  afterEach(() => service.stop());

  const open = async (corsOrigins: readonly string[]): Promise<void> => {
    service = await startService({ corsOrigins });
    rest = restClient(service.url);
  };
  const corsHeaders = ({ headers }: Reply): readonly string[] =>
    [...headers.keys()].filter((name) => name.startsWith('access-control') || name === 'vary');

  it('is not granted unless origins are listed', async () => {
    await open([]);
    for (const method of ['GET', 'OPTIONS']) {
      const reply = await rest.send(method, '/api/health', { headers: { Origin: LISTED, ...PREFLIGHT } });
      expect(corsHeaders(reply)).to.deep.equal([]);
    }
  });

  it('is granted to a listed origin, for problems too', async () => {
    await open(['https://other.example', LISTED]);
    for (const path of ['/api/health', '/api/nothing', '/api/runs?limit=0']) {
      const { headers } = await rest.send('GET', path, { headers: { Origin: LISTED } });
      expect(headers.get('Access-Control-Allow-Origin'), path).to.equal(LISTED);
      expect(headers.get('Vary')).to.equal('Origin');
    }
  });

  it('lets a listed origin read the headers that clients act on', async () => {
    await open([LISTED]);
    const { headers } = await rest.send('GET', '/api/nothing', { headers: { Origin: LISTED } });
    const exposed = headers.get('Access-Control-Expose-Headers')?.split(', ');
    expect(exposed).to.have.members([
      'Allow',
      'Content-Disposition',
      'Content-Location',
      'Council-Run-Id',
      'ETag',
      'Link',
      'Location',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'Total-Count',
      'WWW-Authenticate',
    ]);
  });

  it('is not granted to another origin, and sets Vary for caches', async () => {
    await open([LISTED]);
    for (const origin of ['https://evil.example', 'https://app.example.evil', 'null', 'http://app.example']) {
      const { headers } = await rest.send('GET', '/api/health', { headers: { Origin: origin } });
      expect(headers.get('Access-Control-Allow-Origin')).to.equal(null);
      expect(headers.get('Vary')).to.equal('Origin');
    }
  });

  it('is granted in a preflight with methods and headers', async () => {
    await open([LISTED]);
    const reply = await rest.send('OPTIONS', '/api/councils/run', { headers: { Origin: LISTED, ...PREFLIGHT } });
    expect(reply.status).to.equal(204);
    expect(reply.headers.get('Access-Control-Allow-Origin')).to.equal(LISTED);
    expect(reply.headers.get('Access-Control-Allow-Methods')).to.include('POST');
    expect(reply.headers.get('Access-Control-Allow-Headers')).to.equal(
      'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, MCP-Protocol-Version, ' +
        'Mcp-Method, Mcp-Name',
    );
  });

  it('is granted for every header that a client of a listed origin asks for, whatever SDK it uses', async () => {
    await open([LISTED]);
    // As the OpenAI SDK asks in a browser.
    const asked =
      'authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,' +
      'x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout';
    const headers = { Origin: LISTED, ...PREFLIGHT, 'Access-Control-Request-Headers': `${asked}, a b,"` };
    const reply = await rest.send('OPTIONS', '/v1/chat/completions', { headers });
    expect(reply.status).to.equal(204);
    const allowed = reply.headers.get('Access-Control-Allow-Headers')?.toLowerCase().split(', ') ?? [];
    expect(allowed).to.include.members(asked.split(','));
    expect(new Set(allowed).size).to.equal(allowed.length);
    // Words that are not names of headers are left out.
    for (const name of allowed) expect(name).to.match(/^[a-z-]+$/);
  });

  it('is not granted in the preflight of another origin', async () => {
    await open([LISTED]);
    const headers = { Origin: 'https://evil.example', ...PREFLIGHT };
    const reply = await rest.send('OPTIONS', '/api/councils/run', { headers });
    expect(corsHeaders(reply)).to.deep.equal(['vary']);
  });
});
