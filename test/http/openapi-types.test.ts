import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { copyFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as OpenapiTypes from 'openapi-typescript';
import { LEDGER_AT_ONCE } from '../support/ledger.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { typeFaults } from '../support/type-faults.js';
import { pdfWith } from '../support/upload-client.js';

/** Loaded with `require`, because it loads the compiler (support/typescript.ts explains why). */
const { default: openapiTypes, astToString } = createRequire(import.meta.url)(
  'openapi-typescript',
) as typeof OpenapiTypes;

/** The file that only this test compiles. */
const REQUESTS = fileURLToPath(new URL('../../../test/http/openapi-requests.ts', import.meta.url));
const CLIENT = fileURLToPath(new URL('../../../node_modules/openapi-fetch', import.meta.url));

/** The compiler options of this project that affect types. */
const PROJECT = {
  compilerOptions: {
    target: 'ES2023',
    lib: ['ES2023', 'DOM', 'DOM.Iterable'],
    module: 'NodeNext',
    types: [],
    paths: { '#openapi': ['./openapi.ts'], 'openapi-fetch': [CLIENT] },
    noEmit: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
  },
};

describe('The OpenAPI document', () => {
  let service: RunningService;
  let dir: TempDir;
  let source: string;

  before(async () => {
    service = await startService({ webhookAllowPrivate: true, ledger: LEDGER_AT_ONCE });
    dir = tempDir();
    source = await (await fetch(`${service.url}/api/openapi.json`)).text();
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  it("passes a linter's recommended rules", async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source, config });
    const rendered = problems.map(
      ({ ruleId, message, location: [at] }) => `${ruleId}: ${message} (${at?.pointer ?? ''})`,
    );
    // In some paths an id and a fixed word compete. The service matches the word first.
    expect(rendered.filter((each) => !each.startsWith('no-ambiguous-paths'))).to.deep.equal([]);
    expect(problems.filter(({ severity }) => severity === 'error')).to.deep.equal([]);
  });

  it('generates types that compile and can call every operation', async () => {
    writeFileSync(join(dir.path, 'openapi.ts'), astToString(await openapiTypes(source)));
    copyFileSync(REQUESTS, join(dir.path, 'requests.ts'));
    writeFileSync(join(dir.path, 'tsconfig.json'), JSON.stringify(PROJECT));
    expect(await typeFaults(dir.path)).to.equal('');

    const sent = new Set<string>();
    const { sendEach } = (await import(new URL('openapi-requests.js', import.meta.url).href)) as {
      sendEach(to: {
        baseUrl: string;
        pdf: Blob;
        backupTo: string;
        onSent: (operation: string) => void;
      }): Promise<void>;
    };
    const pdf = new Blob([new Uint8Array(pdfWith(['Trees']))]);
    const backupTo = join(dir.path, 'backup');
    await sendEach({ baseUrl: service.url, pdf, backupTo, onSent: (operation) => sent.add(operation) });
    expect([...sent].sort()).to.deep.equal(operationsIn(source));
  });
});

function operationsIn(source: string): readonly string[] {
  const { paths } = JSON.parse(source) as { paths: Record<string, object> };
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  return operations.sort();
}
