import { expect } from 'chai';
import { councilIssues, councilOf } from '../../src/blueprint/record.js';

const KNOWN = { hasKeys: true, models: { providers: ['offline'], builtIn: ['offline'], unpriced: () => null } };
const [reads, searches] = [{ pdfReader: true }, { webSearch: true }];

/** The warnings about the tools of a council whose nodes follow one another. */
function warningsOf(...tools: readonly object[]): readonly string[] {
  const nodes = tools.map((each, index) => ({ id: `n${index}`, tools: each }));
  const edges = nodes.slice(1).map(({ id }, index) => ({ source: `n${index}`, target: id }));
  return messagesOf({ nodes, edges });
}

function messagesOf(draft: { readonly nodes: readonly { readonly id: string }[]; readonly edges: readonly object[] }) {
  const council = councilOf({ name: 'Line', ...draft } as Parameters<typeof councilOf>[0]);
  return councilIssues(council, KNOWN)
    .filter(({ path }) => path.endsWith('.tools'))
    .map(({ path, message, isFault }) => `${path}${isFault ? '!' : ''}: ${message}`);
}

describe('A council whose documents may leave the service in a web search', () => {
  it('gets a warning for a node that reads documents and searches the web', () => {
    expect(warningsOf({ ...reads, ...searches })).to.deep.equal([
      'nodes[0].tools: Node "n0" searches the web and reads documents: text of documents may leave the service in a search',
    ]);
  });

  it('gets one for a node that searches the web after another has written from documents', () => {
    expect(warningsOf(reads, {}, searches)).to.deep.equal([
      'nodes[2].tools: Node "n2" searches the web and gets what node "n0" writes from documents: ' +
        'text of documents may leave the service in a search',
    ]);
  });

  it('gets one for a node whose loop leads through a node that reads documents', () => {
    const nodes = [
      { id: 'writer', tools: searches },
      { id: 'critic', type: 'critic', tools: reads },
    ];
    const back = { source: 'critic', target: 'writer', type: 'conditional', condition: 'rework' };
    const warnings = messagesOf({ nodes, edges: [{ source: 'writer', target: 'critic' }, back] });
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.match(/^nodes\[0\]\.tools: Node "writer" .* what node "critic" writes from documents/);
  });

  it('gets one for a panel, whose members use its tools', () => {
    const panel = { id: 'panel', type: 'panel', members: ['a', 'b'], tools: { ...reads, ...searches } };
    expect(messagesOf({ nodes: [panel], edges: [] })).to.have.lengthOf(1);
  });

  it('gets none if the search comes first, on another branch, or if no node reads documents', () => {
    expect(warningsOf(searches, reads)).to.deep.equal([]);
    expect(warningsOf(searches, searches)).to.deep.equal([]);
    const nodes = [{ id: 'topic' }, { id: 'a', tools: reads }, { id: 'b', tools: searches }];
    const edges = [
      { source: 'topic', target: 'a' },
      { source: 'topic', target: 'b' },
    ];
    expect(messagesOf({ nodes, edges })).to.deep.equal([]);
  });
});
