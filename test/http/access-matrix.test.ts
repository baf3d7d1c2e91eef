import { expect } from 'chai';
import type { Scope } from '../../src/generated/schemas.js';
import { nodeSystem } from '../../src/system/system.js';
import { openChannel, refusedUpgrade } from '../support/channel-client.js';
import { ALL_SCOPES, addFirstKey, addKey, bearer, restWith } from '../support/keys.js';
import { rawExchange } from '../support/raw-exchange.js';
import { NO_RUN } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

interface Operation {
  readonly method: string;
  readonly path: string;
  /** The scopes of which a key needs one: any key may call if the list is empty, and null needs no key. */
  readonly documented: readonly string[] | null;
}

/** The scopes that each endpoint needs; the first matching rule applies. An endpoint without a rule fails the test. */
const RULES: readonly (readonly [RegExp, readonly Scope[] | null])[] = [
  [/^GET \/api\/health(\/ready)?$/, null],
  [/^POST \/api\/session$/, null],
  [/^(GET|DELETE) \/api\/session$/, []],
  [/^POST \/api\/tickets$/, []],
  [/^POST \/mcp$/, []],
  [/^GET \/api\/(openapi|asyncapi)\.json$/, []],
  [/^GET \/api\/keys$/, ['admin', 'audit']],
  [/^GET \/api\/keys\/events$/, ['audit']],
  [/^(POST|DELETE) \/api\/keys/, ['admin']],
  [/^GET \/metrics$/, ['read']],
  [/^DELETE \/api\/runs\/\{run_id\}$/, ['admin']],
  [/^(GET|POST|DELETE) \/api\/webhooks/, ['admin']],
  [/^(GET|POST) \/api\/backup$/, ['admin']],
  [/^GET \/api\/(runs|councils|documents|approvals|feed|providers|examples)/, ['read']],
  [/^GET \/api\/(overview|estimate|about|prices|ledger)$/, ['read']],
  [/^GET \/ledger\/(checkpoint|tile\/\{level\}\/\{tile\})$/, ['read']],
  [/^GET \/api\/oversight$/, ['audit']],
  [/^POST \/api\/councils\/(run|try|\{blueprint_id\}\/run)$/, ['run']],
  [/^POST \/api\/(councils\/run|runs)\/\{run_id\}\/(cancel|fork)$/, ['run']],
  [/^POST \/api\/councils\/run\/\{run_id\}\/approve$/, ['approve']],
  [/^POST \/api\/councils\/upload-pdf$/, ['documents']],
  [/^DELETE \/api\/documents\/\{document_id\}$/, ['documents']],
  [/^GET \/v1\/(models(\/\{model\})?|responses\/\{response_id\})$/, ['read', 'run']],
  [/^POST \/v1\/(chat\/completions|responses|responses\/\{response_id\}\/cancel)$/, ['run']],
  [/^(POST|PUT|DELETE) \/api\/councils(\/validate|\/\{blueprint_id\})?$/, ['author']],
];

describe('The access matrix', () => {
  let service: RunningService;
  let operations: readonly Operation[];
  let admin: string;
  /** A key with one scope for each scope. */
  const keys = new Map<Scope, string>();
  /** Headers without a valid key, by name of the case. */
  const refused = new Map<string, Readonly<Record<string, string>>>();
  let addresses = 0;

  before(async () => {
    let aheadMs = 0;
    const system = nodeSystem();
    const now = (): string => new Date(Date.now() + aheadMs).toISOString();
    const monotonicMs = (): number => system.monotonicMs() + aheadMs;
    service = await startService({ system: { ...system, now, monotonicMs }, trustedProxies: ['127.0.0.1'] });
    admin = await addFirstKey(service.url);
    const rest = restWith(service.url, admin);
    operations = operationsIn(JSON.parse((await rest.get('/api/openapi.json')).text));
    for (const scope of ALL_SCOPES) keys.set(scope, await addKey(rest, { name: scope, scopes: [scope] }));
    const revoked = await addKey(rest, { name: 'revoked', scopes: ALL_SCOPES });
    expect((await rest.send('DELETE', '/api/keys/revoked')).status).to.equal(204);
    const expired = await addKey(rest, { name: 'expired', scopes: ALL_SCOPES, expires_in: '1h' });
    aheadMs = 2 * 3_600_000;
    refused.set('no key', {});
    refused.set('a wrong key', bearer(`council_${'x'.repeat(43)}`));
    refused.set('no such thing as a key', bearer('x'));
    refused.set('a revoked key', bearer(revoked));
    refused.set('an expired key', bearer(expired));
    refused.set('an unknown session', { Cookie: `council_session=${'x'.repeat(43)}`, Origin: service.url });
  });
  after(() => service.stop());

  /** Sends each request from a new address, which has no failed attempts. */
  const from = (): Readonly<Record<string, string>> => {
    addresses += 1;
    return { 'X-Forwarded-For': `10.0.${addresses >> 8}.${addresses & 255}` };
  };

  async function statusOf({ method, path }: Operation, headers: Readonly<Record<string, string>>): Promise<Response> {
    const target = path.replaceAll('{run_id}', NO_RUN).replaceAll(/\{\w+\}/g, 'nobody');
    const reply = await fetch(service.url + target, { method, headers: { ...from(), ...headers } });
    await reply.body?.cancel();
    return reply;
  }

  it('documents the required scopes of every endpoint', () => {
    expect(operations).to.have.length.above(30);
    for (const operation of operations)
      expect(operation.documented, nameOf(operation)).to.deep.equal(ruleFor(operation));
  });

  it('answers 401 without a valid key, except where no key is needed', async () => {
    for (const operation of operations) {
      const isOpen = ruleFor(operation) === null;
      for (const [what, headers] of refused) {
        const { status, headers: answered } = await statusOf(operation, headers);
        expect(status === 401, `${nameOf(operation)} with ${what}: ${status}`).to.equal(!isOpen);
        expect(answered.get('WWW-Authenticate') !== null, nameOf(operation)).to.equal(!isOpen);
      }
    }
  });

  it('allows each scope its own endpoints and no others', async () => {
    for (const operation of operations) {
      const wanted = ruleFor(operation);
      for (const [scope, key] of keys) {
        const { status } = await statusOf(operation, bearer(key));
        const isLetIn = wanted === null || wanted.length === 0 || wanted.includes(scope);
        const told = `${nameOf(operation)} with ${scope}: ${status}`;
        expect(status, told).not.to.equal(401);
        expect(status === 403, told).to.equal(!isLetIn);
      }
    }
  });

  it('names the missing scope', async () => {
    const reply = await fetch(`${service.url}/api/runs/`, { headers: bearer(keys.get('run') ?? '') });
    expect(reply.status).to.equal(403);
    expect(await reply.json()).to.deep.equal({ detail: 'The key lacks the scope "read"' });
    expect(reply.headers.get('WWW-Authenticate')).to.include('error="insufficient_scope", scope="read"');
  });

  it('applies to sockets as to requests', async () => {
    const run = { body: { input_topic: 'Trees' } };
    const rest = restWith(service.url, admin);
    const runId = rest.read(await rest.send('POST', '/api/councils/run', run), 202, 'run-start.json').run_id;
    for (const path of [`/ws/council/${runId}`, `/ws/council/${runId}?events=all`]) {
      for (const [what, headers] of refused) {
        const { status, body } = await refusedUpgrade(service.url, path, { ...from(), ...headers });
        expect(status, what).to.equal(401);
        expect(JSON.parse(body)).to.have.key('detail');
      }
      for (const [scope, key] of keys) {
        if (scope === 'read') continue;
        const { status, body } = await refusedUpgrade(service.url, path, bearer(key));
        expect(status, scope).to.equal(403);
        expect(JSON.parse(body)).to.deep.equal({ detail: 'The key lacks the scope "read"' });
      }
      const channel = openChannel(service.url, path, bearer(keys.get('read') ?? ''));
      await channel.until(({ event }) => event === 'run_complete');
    }
  });

  it('answers 404 and 405 before it checks the key', async () => {
    expect((await fetch(`${service.url}/api/nothing`)).status).to.equal(404);
    expect((await fetch(`${service.url}/api/runs/`, { method: 'PUT' })).status).to.equal(405);
    expect((await fetch(`${service.url}/api/runs/`, { method: 'OPTIONS' })).status).to.equal(204);
    expect((await refusedUpgrade(service.url, '/ws/nothing')).status).to.equal(404);
    const upgrade = 'Host: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    expect((await rawExchange(service.url, [`POST /ws/council/x HTTP/1.1\r\n${upgrade}`])).status).to.equal(405);
  });

  it('checks host and origin before the key, and the key before the body', async () => {
    const post = { method: 'POST', body: '{' };
    const foreign = await fetch(`${service.url}/api/councils/run`, {
      ...post,
      headers: { Origin: 'http://evil.test' },
    });
    expect(foreign.status).to.equal(403);
    expect((await fetch(`${service.url}/api/councils/run`, post)).status).to.equal(401);
    const key = bearer(keys.get('run') ?? '');
    expect((await fetch(`${service.url}/api/councils/run`, { ...post, headers: key })).status).to.equal(415);
  });
});

function ruleFor(operation: Operation): readonly Scope[] | null {
  const rule = RULES.find(([pattern]) => pattern.test(nameOf(operation)));
  if (rule === undefined) throw new Error(`${nameOf(operation)} has no rule: say who may call it`);
  return rule[1];
}

function nameOf({ method, path }: Operation): string {
  return `${method} ${path}`;
}

function operationsIn(document: unknown): readonly Operation[] {
  const { paths } = document as { paths: Record<string, Record<string, { security?: Record<string, string[]>[] }>> };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, { security }]) => {
      if (security === undefined) throw new Error(`${verb} ${path} does not say who may call it`);
      const roles = [...new Set(security.flatMap((each) => Object.values(each).flat()))];
      return { method: verb.toUpperCase(), path, documented: security.length === 0 ? null : roles };
    }),
  );
}
