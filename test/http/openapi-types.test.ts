import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import openapiTypes, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { pdfWith } from '../support/upload-client.js';

/** Compiled here and nowhere else. */
const REQUESTS = '../../../test/http/openapi-requests.ts';

describe('The OpenAPI document', () => {
  let service: RunningService;
  let dir: TempDir;
  let source: string;

  before(async () => {
    service = await startService();
    dir = tempDir();
    source = await (await fetch(`${service.url}/api/openapi.json`)).text();
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  it("has no fault by a linter's recommended rules", async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source, config });
    const rendered = problems.map(
      ({ ruleId, message, location: [at] }) => `${ruleId}: ${message} (${at?.pointer ?? ''})`,
    );
    // Some paths have an id and a word at the same place; a word comes before an id.
    expect(rendered.filter((each) => !each.startsWith('no-ambiguous-paths'))).to.deep.equal([]);
    expect(problems.filter(({ severity }) => severity === 'error')).to.deep.equal([]);
  });

  it('gives types that compile, and through which every operation is asked', async () => {
    const types = join(dir.path, 'openapi.ts');
    writeFileSync(types, astToString(await openapiTypes(source)));
    expect(faultsIn([fileURLToPath(new URL(REQUESTS, import.meta.url)), types], { '#openapi': [types] })).to.equal('');

    const sent = new Set<string>();
    const { sendEach } = (await import(new URL('openapi-requests.js', import.meta.url).href)) as {
      sendEach(to: { baseUrl: string; pdf: Blob; onSent: (operation: string) => void }): Promise<void>;
    };
    const pdf = new Blob([new Uint8Array(pdfWith(['Trees']))]);
    await sendEach({ baseUrl: service.url, pdf, onSent: (operation) => sent.add(operation) });
    expect([...sent].sort()).to.deep.equal(operationsIn(source));
  });
});

/** What the compiler says of files, by the rules of this project that are about types. */
function faultsIn(files: readonly string[], paths: Record<string, string[]>): string {
  const program = ts.createProgram(files, {
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    types: [],
    paths,
    noEmit: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
  });
  return ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), {
    getCurrentDirectory: () => process.cwd(),
    getCanonicalFileName: (name) => name,
    getNewLine: () => '\n',
  });
}

function operationsIn(source: string): readonly string[] {
  const { paths } = JSON.parse(source) as { paths: Record<string, object> };
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  return operations.sort();
}
