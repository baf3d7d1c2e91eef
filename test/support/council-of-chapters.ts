/** A council that writes a report: an outline, a run of another council for each chapter, and an editor. */
import type { BlueprintCreate } from '../../src/generated/schemas.js';
import type { Script } from './scripted-model.js';

export const CHAPTER: BlueprintCreate = { id: 'chapter', name: 'Chapter', nodes: [{ id: 'write', label: 'Write' }] };
const CHAPTERS = { id: 'chapters', type: 'council', council: 'chapter', for_each: 'lines' } as const;

export function report(changes: object = {}, rest: object = {}): BlueprintCreate {
  return {
    id: 'report',
    name: 'Report',
    nodes: [
      { id: 'outline', label: 'Outline' },
      { ...CHAPTERS, ...changes },
      { id: 'edit', label: 'Edit' },
    ],
    edges: [
      { source: 'outline', target: 'chapters' },
      { source: 'chapters', target: 'edit' },
    ],
    ...rest,
  };
}

export const OUTLINE = '- One\n- Two\n\n3. Three';

/** A chapter is its topic and its material; the editor keeps the draft. */
export const script: Script = ({ promptInput: { label, topic, material = '', draft } }) => {
  if (label === 'Outline') return { text: OUTLINE };
  return { text: label === 'Edit' ? `${draft}` : `<${topic}|${material}>` };
};

/** As `script`, but the chapters that a test names are not answered until it releases them. */
export function holding(isHeld: (material: string) => boolean): Script {
  return (request, index) => {
    const { label, material = '' } = request.promptInput;
    return label === 'Write' && isHeld(material) ? 'hold' : script(request, index);
  };
}
