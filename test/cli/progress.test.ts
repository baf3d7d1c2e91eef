import { expect } from 'chai';
import type { Progress, Shown } from '../../src/cli/terminal/progress.js';
import { openProgress } from '../../src/cli/terminal/progress.js';
import { manualSystem } from '../support/manual-system.js';

const FRONT: Shown = { nodes: ['left', 'right'], iteration: 1, score: null };

describe('The progress of a run', () => {
  const system = manualSystem();
  let written: string[];
  let progress: Progress;

  const open = (isTTY: boolean, columns = 80): void => {
    written = [];
    const write = (text: string | Uint8Array): boolean => written.push(String(text)) > 0;
    progress = openProgress({ write, isTTY, columns }, system);
  };

  afterEach(() => progress.close());

  it('redraws the progress line only when it has changed', () => {
    open(true);
    progress.show(FRONT);
    progress.show(FRONT);
    expect(written).to.deep.equal(['\r\x1b[K   0.0 s  left, right  iteration 1']);
    system.advance(200);
    expect(written.at(-1)).to.equal('\r\x1b[K   0.2 s  left, right  iteration 1');
    expect(written).to.have.lengthOf(2);
  });

  it('keeps the progress line in one row', () => {
    open(true, 20);
    progress.show(FRONT);
    expect(written).to.deep.equal(['\r\x1b[K   0.0 s  left, rig']);
  });

  it('stops its timer and erases its line when it is closed', () => {
    open(true);
    progress.show(FRONT);
    progress.close();
    progress.close();
    expect(written.slice(1)).to.deep.equal(['\r\x1b[K']);
    expect(system.timers()).to.equal(0);
  });

  it('writes one line for each running node to a pipe', () => {
    open(false);
    progress.show({ ...FRONT, nodes: ['left'] });
    progress.show(FRONT);
    progress.show({ ...FRONT, nodes: [] });
    expect(written).to.deep.equal(['   0.0 s  left  iteration 1\n', '   0.0 s  right  iteration 1\n']);
  });

  it('replaces control characters in the name of a node', () => {
    open(true);
    progress.show({ ...FRONT, nodes: ['\x1b[2J\nx'] });
    expect(written.join('').replace('\r\x1b[K', '')).to.not.match(/[\x1b\n]/);
  });
});
