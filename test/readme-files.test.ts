import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Every file that a README may name, by its path from the root. */
const FILES = [...readdirSync(ROOT), ...['src', 'test', 'schemas', '.docker'].flatMap(filesIn)];

/** The name of a file between backticks. A star stands for any characters. */
const NAMED = /`([\w.*-][\w./*-]*\.(?:tsx?|mjs|json|css|ndjson|yml))`/g;

/** The address of a link within this repository, without its fragment. */
const LINKED = /\]\((?![a-z]+:|#)([^)#]+)/g;

describe('READMEs', () => {
  for (const readme of ['README.md', ...FILES.filter((file) => file.endsWith('/README.md')).sort()]) {
    it(`name and link only files that exist: ${readme}`, () => {
      const folder = dirname(readme);
      const text = readFileSync(join(ROOT, readme), 'utf8');
      const named = namesIn(text, NAMED).filter((name) => !isFile(name, folder));
      const linked = namesIn(text, LINKED).filter((name) => !existsSync(join(ROOT, folder, name)));
      expect([...named, ...linked]).to.deep.equal([]);
    });
  }

  it('name only functions that are in their files: the steps in src/README.md', () => {
    const text = readFileSync(join(ROOT, 'src/README.md'), 'utf8').replaceAll(/\s+/g, ' ');
    const named = [...text.matchAll(/`(#?\w+)`(?: \(| in )`([\w./-]+\.ts)`/g)];
    expect(named.length).to.be.greaterThan(25);
    const missing = named.filter(([, name = '', file = '']) => {
      const source = readFileSync(join(ROOT, 'src', file), 'utf8');
      return !new RegExp(`(?<![\\w#])${name}(?:<.*>)?(?:\\(|:| =)`).test(source);
    });
    expect(missing.map(([each]) => each)).to.deep.equal([]);
  });
});

function filesIn(folder: string): readonly string[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return files.filter((file) => !file.includes('node_modules')).map((file) => join(folder, file));
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}

/** Whether a name is the end of the path of a file: in the README's folder, or with its own folder anywhere. */
function isFile(name: string, folder: string): boolean {
  if (['.', 'src', 'test', folder].some((start) => existsSync(join(ROOT, start, name)))) return true;
  const pattern = new RegExp(`(?:^|/)${name.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
  return FILES.some((file) => pattern.test(file) && (basename(name) !== name || file.startsWith(`${folder}/`)));
}
