import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openChannel } from '../support/channel-client.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { freePort } from '../support/free-port.js';
import type { FakeDns } from '../support/fake-dns.js';
import { startFakeDns } from '../support/fake-dns.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { pdfWith, uploaded } from '../support/upload-client.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

/** From dist/test/app, where this file runs. */
const textOf = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

const PROXY = '.docker/nginx.conf.template';

describe('The compose file', () => {
  const compose = textOf('docker-compose.yml');
  /** The settings of the first instance; the second one inherits them all. */
  const instance = /\n {2}council-1: &council\n((?: {4}.*\n|\n)+)/.exec(compose)?.[1] ?? '';

  it('passes every setting from a file that may be missing', () => {
    expect(instance).to.match(/\n {4}env_file:\n {6}- path: \.env\n {8}required: false\n/);
    expect(compose).to.match(/\n {2}council-2:\n {4}<<: \*council\n/);
  });

  it('does not let that file override the settings of the container', () => {
    const server = 'EVENTSTORE_URL: esdb://kurrentdb:2113?tls=false';
    for (const own of ['HOST: 0.0.0.0', "PORT: '8000'", 'DATA_DIR: /data', server]) {
      expect(instance).to.include(`\n      ${own}\n`);
    }
    // Compose replaces such names by values from the file.
    const replaced = [...compose.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name);
    for (const own of ['HOST', 'PORT', 'DATA_DIR', 'EVENTSTORE_URL']) expect(replaced).not.to.include(own);
  });

  it('starts without keys, because it is published on a loopback address only', () => {
    expect(instance).to.include("\n      AUTH: 'off'\n");
    const published = [...compose.matchAll(/\n {4}ports:\n((?: {6}- .*\n)+)/g)].map(([, ports]) => ports);
    expect(published).to.deep.equal(['      - 127.0.0.1:8000:8000\n', '      - 127.0.0.1:3000:3000\n']);
  });

  it('accepts loopback names and the names of the instances as Host, or those that the file sets', () => {
    expect(instance).to.include('ALLOWED_HOSTS: ${ALLOWED_HOSTS:-localhost,127.0.0.1,council-1,council-2}\n');
  });

  it('lets an instance reach a model on the host', () => {
    expect(instance).to.match(/\n {4}extra_hosts:\n {6}- host\.docker\.internal:host-gateway\n/);
  });

  it('has a proxy that looks up the addresses of instances again every few seconds', () => {
    const [, alias = ''] = /\n {4}networks:\n {6}default:\n {8}aliases: \[(\w+)\]\n/.exec(instance) ?? [];
    const proxy = textOf(PROXY);
    expect(proxy).to.match(/^ *resolver \$\{NGINX_LOCAL_RESOLVERS\} valid=\d+s/m);
    // Nginx resolves a name in a variable when it needs it, and any other name only at the start.
    const [, variable = ''] = new RegExp(`^ *set (\\$\\w+) ${alias}:8000;`, 'm').exec(proxy) ?? [];
    const targets = [...proxy.matchAll(/^ *proxy_pass ([^;]+);/gm)].map(([, target]) => target);
    expect(new Set(targets)).to.deep.equal(new Set([`http://${variable}`]));
    expect(proxy).not.to.match(/^ *upstream /m);
  });

  it('has a proxy that asks the name server of its container, in Docker and in Podman', () => {
    const service = /\n {2}proxy:\n((?: {4}.*\n)+)/.exec(compose)?.[1] ?? '';
    // With this setting the image's entrypoint reads /etc/resolv.conf and fills its result into the template.
    expect(service).to.match(/^ {4}environment:\n {6}NGINX_ENTRYPOINT_LOCAL_RESOLVERS: '1'\n/m);
    expect(service).to.include(`\n      - ./${PROXY}:/etc/nginx/templates/default.conf.template:ro\n`);
    expect(textOf(PROXY).match(/\$\{[^}]*\}/g)).to.deep.equal(['${NGINX_LOCAL_RESOLVERS}']);
    expect(textOf(PROXY)).not.to.include('127.0.0.11');
  });

  it('pins every image to a version', () => {
    const dockerfile = textOf('.docker/Dockerfile');
    const images = [...compose.matchAll(/^ {4}image: (.*)$/gm), ...dockerfile.matchAll(/^FROM (\S+)/gm)];
    for (const [, image = ''] of images) expect(image).to.match(/:v?\d+\.\d+/);
  });

  it('sets X-Forwarded-For to the address of the client, whatever the client sent', () => {
    expect(instance).to.match(/\n {6}TRUSTED_PROXIES: \$\{TRUSTED_PROXIES:-10\.0\.0\.0\/8,/);
    expect(textOf(PROXY)).to.include('proxy_set_header X-Forwarded-For $remote_addr;');
    expect(textOf(PROXY)).to.include('proxy_set_header X-Forwarded-Proto $scheme;');
  });

  it('has an image that contains the council command', () => {
    expect(textOf('.docker/Dockerfile')).to.include('ln -s /app/src/cli/council.mjs /usr/local/bin/council');
  });
});

// Only where nginx is installed.
if (spawnSync('nginx', ['-v']).status === 0) {
  describe('The proxy of the compose file', () => {
    let dns: FakeDns;
    let dir: TempDir;
    let proxy: Child | null = null;
    let url: string;
    const services: RunningService[] = [];

    beforeEach(async () => {
      dir = tempDir();
      dns = await startFakeDns();
    });
    afterEach(async () => {
      proxy?.signal('SIGTERM');
      await proxy?.ended;
      await Promise.all(services.splice(0).map((service) => service.stop()));
      dns.stop();
      dir.remove();
    });

    /** Starts an instance on its own address. */
    const serve = async (address: string, port: number): Promise<RunningService> => {
      const service = await startService({ model: scriptedModel(() => 'hold'), host: address, port });
      services.push(service);
      return service;
    };
    const startProxy = async (instancePort: number): Promise<void> => {
      const port = await freePort();
      const server = textOf(PROXY)
        .replace('${NGINX_LOCAL_RESOLVERS}', `127.0.0.1:${dns.port}`)
        .replace('listen 8000', `listen 127.0.0.1:${port}`)
        .replace(':8000;', `:${instancePort};`);
      const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path temp/${name};`,
      );
      const main = 'daemon off; master_process off; pid nginx.pid; error_log stderr; events {}';
      mkdirSync(join(dir.path, 'temp'));
      writeFileSync(join(dir.path, 'nginx.conf'), `${main} http { access_log off; ${places.join(' ')} ${server} }`);
      proxy = startChild('nginx', ['-p', dir.path, '-c', 'nginx.conf', '-e', 'stderr']);
      url = `http://127.0.0.1:${port}`;
      await untilTrue(isServing);
    };
    const isServing = (): Promise<boolean> =>
      fetch(`${url}/api/health`).then(
        (reply) => reply.status === 200,
        () => false,
      );

    soakIt('finds an instance rebuilt at another address, and passes on Host, Origin and sockets', async () => {
      dns.pointTo('127.0.0.2');
      const first = await serve('127.0.0.2', 0);
      const port = Number(new URL(first.url).port);
      await startProxy(port);
      const rest = restClient(url);
      const body = { input_topic: 'Trees' };
      const { run_id } = rest.read(await rest.post('/api/councils/run', body, { Origin: url }), 202, 'run-start.json');
      rest.problem(await rest.post('/api/councils/run', body, { Origin: 'https://evil.example' }), 403);
      rest.problem(await rest.get('/api/runs/?limit=0'), 422);
      await uploaded(url, pdfWith(['Trees']));
      const channel = openChannel(url, `/ws/council/${run_id}`, { Origin: url });
      await channel.until(({ event }) => event === 'connected');

      await first.stop();
      await channel.closed;
      await serve('127.0.0.3', port);
      // The name server may still list the stopped instance.
      dns.pointTo('127.0.0.2', '127.0.0.3');
      await untilTrue(isServing);
      for (let request = 0; request < 10; request += 1) {
        expect(rest.read(await rest.get('/api/runs/'), 200, 'history-list.json')).to.deep.equal([]);
      }
    });
  });
}
