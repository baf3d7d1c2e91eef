import { expect } from 'chai';
import { existsSync, readFileSync } from 'node:fs';
import { parseMetrics } from '../support/prometheus-text.js';
import { startService } from '../support/running-service.js';

/** From dist/test/telemetry, where this file runs. */
const ROOT = new URL('../../../', import.meta.url);
const textOf = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

describe('The profile observe of the compose file', () => {
  const compose = textOf('docker-compose.yml');
  const dashboard = JSON.parse(textOf('src/telemetry/observe/dashboard.json')) as { readonly panels: readonly Panel[] };
  const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

  it('mounts files that exist', () => {
    const mounted = [...compose.matchAll(/^ {6}- \.\/(\S+?):\/\S+:ro$/gm)].map(([, file = '']) => file);
    expect(mounted.filter((file) => file.startsWith('src/telemetry/observe/'))).to.have.lengthOf(4);
    for (const file of mounted) expect(existsSync(new URL(file, ROOT)), file).to.equal(true);
  });

  it('starts only with the profile, and scrapes each instance under a name that it accepts', () => {
    for (const service of ['prometheus', 'grafana'])
      expect(compose).to.match(new RegExp(`\\n {2}${service}:\\n {4}image: \\S+\\n {4}profiles: \\[observe\\]\\n`));
    const [, listed = ''] = /targets: \[(.*)\]/.exec(textOf('src/telemetry/observe/prometheus.yml')) ?? [];
    const targets = [...listed.matchAll(/'([\w-]+):8000'/g)].map(([, name = '']) => name);
    const instances = [...compose.matchAll(/^ {2}(council-\d+):/gm)].map(([, name = '']) => name);
    expect(targets).to.deep.equal(instances);
    const [, hosts = ''] = /ALLOWED_HOSTS:-([^}]*)/.exec(compose) ?? [];
    expect(hosts.split(',')).to.include.members(targets);
  });

  it('has a dashboard that asks only for metrics of the service, and has each panel once', async () => {
    const service = await startService();
    const families = parseMetrics(await (await fetch(`${service.url}/metrics`)).text());
    await service.stop();
    const asked = queries.flatMap((query) => query.match(/\b(?:council|nodejs|process)_\w+/g) ?? []);
    for (const name of asked) expect([...families.keys()], name).to.include(name.replace(/_bucket$/, ''));
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).to.equal(dashboard.panels.length);
    // The rates, the waits and the cost.
    for (const name of ['council_runs_started_total', 'council_approvals_waiting', 'council_model_cost_usd_total'])
      expect(asked).to.include(name);
    // A sum over instances would count figures of all instances twice.
    for (const query of queries) expect(query).not.to.match(/sum[^(]*\((?:council_runs_unfinished|council_approvals)/);
  });
});
