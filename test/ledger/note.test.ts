import { expect } from 'chai';
import { generateKeyPairSync } from 'node:crypto';
import {
  NoteInvalid,
  checkpointIn,
  checkpointText,
  newKeyPem,
  noteSigner,
  signatureLine,
  verifierKey,
  vkeyText,
} from '../../src/ledger/note.js';
import { MerkleTree, leafHash } from '../../src/ledger/tree.js';
import { isConsistent, openNote, parseVkey } from './verifier.js';

/** The example of C2SP signed-note. */
const VKEY = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
const NOTE = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`;
/** The example of C2SP tlog-checkpoint. */
const CHECKPOINT = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
`;

describe('Signed notes', () => {
  it('verify the example of C2SP, here and by the other verifier', () => {
    const key = verifierKey(VKEY);
    expect(vkeyText(key)).to.equal(VKEY);
    const [text, line] = NOTE.split('\n\n') as [string, string];
    expect(signatureLine({ text: `${text}\n`, lines: [line.trim()] }, key)).to.equal(line.trim());
    expect(openNote(NOTE, parseVkey(VKEY)).text).to.equal('This is an example message.\n');
    expect(() => signatureLine({ text: `${text}!\n`, lines: [line.trim()] }, key)).to.throw('wrong');
    expect(() => openNote(NOTE.replace('message.', 'message!'), parseVkey(VKEY))).to.throw('wrong');
  });

  it('of a checkpoint are read as C2SP writes them', () => {
    const { origin, size, root, lines } = checkpointIn(CHECKPOINT);
    expect({ origin, size, root: root.toString('base64') }).to.deep.equal({
      origin: 'example.com/behind-the-sofa',
      size: 20852163,
      root: 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=',
    });
    expect(lines).to.have.lengthOf(1);
    for (const [from, to] of [
      ['20852163', '020852163'],
      ['20852163', '-1'],
      ['q2I=', 'q2I'],
      ['example.com/behind-the-sofa\n2', '\n2'],
      ['\n\n—', '\n—'],
      ['OAYQ8=\n', 'OAYQ8='],
      ['sofa\n2', 'so\u0007fa\n2'],
    ] as const)
      expect(() => checkpointIn(CHECKPOINT.replace(from, to)), to).to.throw('no signed checkpoint');
  });

  it('are signed as the other verifier reads them', () => {
    const root = leafHash(Buffer.from('a'));
    const signer = noteSigner('example.com/council', newKeyPem());
    const note = signer.sign(checkpointText({ origin: 'example.com/council', size: 1, root }));
    const key = parseVkey(vkeyText(signer.key));
    expect(openNote(note, key).text).to.equal(`example.com/council\n1\n${root.toString('base64')}\n`);
    const other = noteSigner('example.com/council', newKeyPem());
    expect(() => signatureLine(checkpointIn(note), other.key)).to.throw('no signature of the key');
    expect(() =>
      verifierKey(vkeyText(signer.key).replace(/[+](.)/, (_, digit) => (digit === '0' ? '+1' : '+0'))),
    ).to.throw();
    expect(() => noteSigner('x', 'no key')).to.throw();
    const { privateKey } = generateKeyPairSync('ed448');
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    expect(() => noteSigner('x', pem)).to.throw(NoteInvalid, 'no Ed25519 key');
  });

  it('of two sizes are consistent by the proof of the tree, and by no other', async () => {
    const tree = new MerkleTree(async () => []);
    const roots = [tree.root()];
    for (let at = 0; at < 40; at += 1) {
      tree.add(leafHash(Buffer.from(`${at}`)));
      roots.push(tree.root());
    }
    const head = (size: number) => ({ size, root: roots[size] ?? Buffer.of() });
    for (let size = 1; size <= 40; size += 1)
      for (let old = 0; old <= size; old += 1) {
        const proof = await tree.consistency(old, size);
        expect(isConsistent(proof, head(old), head(size)), `${old} in ${size}`).to.equal(true);
        if (old === 0) continue;
        const forged = { size: old, root: leafHash(Buffer.from('forged')) };
        expect(isConsistent(proof, forged, head(size))).to.equal(false);
      }
  });
});
