import { expect } from 'chai';
import { readFileSync } from 'node:fs';

interface LockedPackage {
  readonly dev?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

describe('The lock file', () => {
  const text = readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Readonly<Record<string, LockedPackage>> };
  const native = Object.entries(packages).filter(([, { cpu }]) => cpu !== undefined);

  it('has the native development tools for Linux, macOS and Windows on x64 and arm64', () => {
    for (const tool of ['@oxfmt', '@oxlint', '@oxlint-tsgolint'])
      for (const system of ['linux', 'darwin', 'win32'])
        for (const processor of ['x64', 'arm64']) {
          const fits = native.filter(([, { os, cpu }]) => os?.includes(system) === true && cpu?.includes(processor));
          const paths = fits.map(([path]) => path);
          expect(paths.join('\n'), `${system} ${processor}`).to.include(`node_modules/${tool}/`);
        }
  });

  it('has no native production package but SQLite and esbuild', () => {
    const installed = native.filter(([, { dev, os }]) => dev !== true && os?.join() !== 'android');
    const names = new Set(installed.map(([path]) => path.replace(/^node_modules\/(@esbuild)\/.*/, '$1')));
    expect([...names]).to.deep.equal(['@esbuild', 'node_modules/@photostructure/sqlite']);
  });
});
