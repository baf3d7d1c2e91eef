import { expect } from 'chai';
import { CouncilClient } from '../../../src/client/client.js';
import type { Draft } from '../../../src/console/pages/blueprint/draft.js';
import {
  EMPTY,
  bodyOf,
  withEdgeChanged,
  withNode,
  withNodeChanged,
} from '../../../src/console/pages/blueprint/draft.js';
import { STARTER } from '../../../src/console/pages/blueprint/starter.js';
import { Editor } from '../../../src/console/pages/blueprint/store.js';
import type { RunningService } from '../../support/running-service.js';
import { startService } from '../../support/running-service.js';

/** A node that never runs, because it has no edges in a council without loops. */
const LINE: Draft = { ...STARTER, edges: STARTER.edges.filter(({ target }) => target !== 'writer') };

describe('The editor of a blueprint', () => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService();
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  /** A timer without effect, because the test requests the checks. */
  function editorOf(mayAuthor = true): Editor {
    return new Editor(EMPTY, { council, mayAuthor, later: () => () => undefined });
  }
  async function opened(draft: Draft = STARTER): Promise<Editor> {
    const { id } = await council.blueprints.create(bodyOf(draft));
    const editor = editorOf();
    await editor.load(id);
    return editor;
  }
  const renamed = (editor: Editor, name: string): Draft => ({ ...editor.draft.value, name });

  it('shows an invalid condition at its edge at once, until it is undone', async () => {
    const editor = await opened();
    editor.edit(withEdgeChanged(editor.draft.value, 1, { condition: 'score <' }));
    const [finding] = editor.findings.value;
    expect(finding?.part).to.deep.equal({ kind: 'edge', at: 1 });
    expect(finding?.message).to.include('character 8');
    await editor.check();
    expect(editor.isValid.value).to.equal(false);
    expect(editor.findings.value.filter(({ path }) => path === 'edges[1].condition')).to.have.length(1);
    editor.undo();
    await editor.check();
    expect(editor.findings.value).to.deep.equal([]);
    expect(editor.isValid.value).to.equal(true);
    editor.stop();
  });

  it('shows the findings and refusals of the service at their node', async () => {
    const editor = await opened(LINE);
    editor.edit(withNode(editor.draft.value, null));
    await editor.check();
    expect(editor.findings.value.map(({ part }) => part)).to.deep.equal([{ kind: 'node', at: 3 }]);
    expect(editor.isValid.value).to.equal(true);
    editor.edit(withNodeChanged(editor.draft.value, 0, { temperature: 7 }));
    await editor.check();
    expect(editor.findings.value[0]).to.deep.include({ path: 'nodes[0].temperature', part: { kind: 'node', at: 0 } });
    expect(editor.isValid.value).to.equal(false);
    editor.stop();
  });

  it('shows each wrong field of a form, with the labels of members in messages', async () => {
    const editor = await opened();
    const members = [{ id: 'a', temperature: 9 }, { id: 'b' }, { id: 'c', label: '', maxOutputTokens: 0 }];
    const panel = { id: 'panel', label: 'The panel', type: 'panel' as const, members, fallbacks: [''], quorum: 0 };
    editor.edit({ name: 'Panel', nodes: [panel, { id: 'w', label: 'Writer', temperature: 7 }], edges: [] });
    await editor.check();
    const paths = editor.findings.value.map(({ path }) => path);
    expect(paths).to.have.members([
      ...['nodes[0].members[0].temperature', 'nodes[0].members[2].label', 'nodes[0].members[2].maxOutputTokens'],
      ...['nodes[0].fallbacks[0]', 'nodes[0].quorum', 'nodes[1].temperature'],
    ]);
    expect([0, 1, 2].map((at) => editor.faultsUnder(`nodes[0].members[${at}]`))).to.deep.equal([1, 0, 2]);
    expect([editor.isValid.value, editor.checkFault.value]).to.deep.equal([false, null]);
    editor.edit({ name: 'Pair', nodes: [STARTER.nodes[0] ?? panel, { id: 'w', label: 'Lonely' }], edges: [] });
    await editor.check();
    expect(editor.findings.value.map(({ message }) => message).join()).to.match(/Member "Lonely" has no incoming edge/);
    editor.stop();
  });

  it('saves, and does not count fields that the service adds as changes', async () => {
    const editor = editorOf();
    editor.begin(STARTER);
    expect(editor.isChanged.value).to.equal(true);
    const saved = await editor.save();
    expect(saved?.version).to.equal(1);
    expect(editor.isChanged.value).to.equal(false);
    editor.edit(renamed(editor, 'Other'));
    expect((await editor.save())?.version).to.equal(2);
    editor.undo();
    expect(editor.isChanged.value).to.equal(true);
    expect(editor.draft.value.name).to.equal('Writer and critic');
  });

  it('gives a new council an id from its name, with a number if that is taken, or the id that the user typed', async () => {
    const idsOf = async (name: string, typed = ''): Promise<readonly (string | undefined)[]> => {
      const ids: (string | undefined)[] = [];
      for (let count = 0; count < 2; count += 1) {
        const editor = editorOf();
        editor.begin({ ...STARTER, name });
        editor.newId.value = typed === '' ? '' : `${typed}.${count}`;
        ids.push((await editor.save())?.id);
      }
      return ids;
    };
    expect(await idsOf('Rat der Stadt: Größe & Maß')).to.deep.equal([
      'rat-der-stadt-grosse-mass',
      'rat-der-stadt-grosse-mass-2',
    ]);
    expect(await idsOf('Run'), 'a reserved id').to.deep.equal(['run-2', 'run-3']);
    expect(await idsOf('New'), 'the URL of a new council').to.deep.equal(['new-council', 'new-council-2']);
    expect(await idsOf('議会'), 'no letters that an id can have').to.deep.equal(['council', 'council-2']);
    expect(await idsOf('Other', 'My_own')).to.deep.equal(['My_own.0', 'My_own.1']);
  });

  it('keeps a saved budget, saved fallbacks and model options in edits of other fields, also of a deleted blueprint', async () => {
    const kept = { budget: { tokens: 9_000 }, fallbacks: ['other'], model_options: { god_mode: true } };
    const editor = await opened({ ...STARTER, ...kept });
    editor.edit(renamed(editor, 'Other'));
    expect(await editor.save()).to.deep.include(kept);
    await council.blueprints.delete(editor.saved.value?.id ?? '');
    editor.edit(renamed(editor, 'Again'));
    expect(await editor.save()).to.equal(null);
    expect(await editor.overwrite()).to.deep.include(kept);
  });

  it('removes a saved approval rule, budget and fallbacks', async () => {
    const saves = { approvals: { not_by_starter: true }, budget: { tokens: 9_000 }, fallbacks: ['other'] };
    const editor = await opened({ ...STARTER, ...saves });
    const { name, nodes, edges } = editor.draft.value;
    editor.edit({ name, nodes, edges });
    const saved = await editor.save();
    expect(saved).to.not.have.any.keys('approvals', 'budget', 'fallbacks');
    expect(editor.isChanged.value).to.equal(false);
  });

  it("does not save over another user's version, then saves as the user decides", async () => {
    const editor = await opened();
    const id = editor.saved.value?.id ?? '';
    await council.blueprints.update(id, { name: 'Theirs' });
    editor.edit(renamed(editor, 'Mine'));
    expect(await editor.save()).to.equal(null);
    expect(editor.conflict.value?.theirs?.name).to.equal('Theirs');
    expect((await council.blueprints.get(id)).name).to.equal('Theirs');

    editor.useTheirs();
    expect(editor.draft.value.name).to.equal('Theirs');
    expect(editor.isChanged.value).to.equal(false);
    editor.undo();
    expect(editor.draft.value.name).to.equal('Mine');

    await council.blueprints.update(id, { name: 'Theirs again' });
    expect(await editor.save()).to.equal(null);
    await council.blueprints.update(id, { name: 'Theirs once more' });
    expect(await editor.overwrite(), 'a third state that was not shown').to.equal(null);
    expect(editor.conflict.value?.theirs?.name).to.equal('Theirs once more');
    expect((await editor.overwrite())?.name).to.equal('Mine');
    expect(editor.conflict.value).to.equal(null);
  });

  it('saves a deleted blueprint again under its id', async () => {
    const editor = await opened();
    const id = editor.saved.value?.id ?? '';
    await council.blueprints.delete(id);
    editor.edit(renamed(editor, 'Back'));
    expect(await editor.save()).to.equal(null);
    expect(editor.conflict.value).to.deep.equal({ theirs: null });
    expect(await editor.overwrite()).to.include({ id, name: 'Back', version: 1 });
  });

  it('changes nothing for a read-only key, and shows the saved findings', async () => {
    const { id } = await council.blueprints.create(bodyOf(withNode(LINE, null)));
    const editor = editorOf(false);
    await editor.load(id);
    editor.edit(EMPTY);
    expect(editor.draft.value.nodes).to.have.length(4);
    expect(editor.findings.value).to.have.length(1);
    expect(editor.roles.value.get('critic')).to.equal('critic');
  });
});
