/** A draft's tree as a document for Word. */
import { AlignmentType, Document, LevelFormat, convertInchesToTwip } from 'docx';
import type { DraftNode } from '../draft/draft-tree.js';
import { withMissing } from '../draft/quotations.js';
import { quotationsText } from '../draft/verdicts.js';
import { documentName, markOf, withCitations } from '../draft/sources.js';
import type { NumberedList } from './draft-writer.js';
import { CODE_FONT, DraftWriter, styleName } from './draft-writer.js';
import type { DraftSource } from '../generated/schemas.js';
import type { DocxOptions } from './docx.js';
import { xmlText } from './xml-text.js';

/** @param draft from `draft-tree.ts`, of a text with the signs of `quotations.ts` */
export function documentOf(draft: readonly DraftNode[], { title, sources, output, mark }: DocxOptions): Document {
  const tree = [...withSources(withMissing(draft), sources), ...outputNodes(output)];
  const writer = new DraftWriter(tree);
  const last =
    mark.line === null ? [] : writer.blocks([{ tag: 'p', children: [{ tag: 'em', children: [mark.line] }] }]);
  const children = [...writer.blocks(tree), ...last];
  return new Document({
    title: xmlText(title),
    creator: 'Council Run Service',
    customProperties: mark.properties.map(([name, value]) => ({ name, value: xmlText(value) })),
    styles: { default: { document: DEFAULTS }, paragraphStyles: STYLES },
    numbering: { config: writer.numberedLists().map(numbering) },
    footnotes: writer.footnotes(),
    sections: [{ children }],
  });
}

/** A draft with a number for each mark of a known source, with a list of these sources and what they lack at its end. */
function withSources(draft: readonly DraftNode[], sources: readonly DraftSource[]): readonly DraftNode[] {
  const cited = sources.flatMap(({ document, filename, page }) => {
    if (document === null || page === null) return [];
    return [{ mark: markOf({ document, page }), name: `${documentName(document, filename)}, page ${page}` }];
  });
  const missing = quotationsText(sources);
  const note: readonly DraftNode[] = missing === null ? [] : [{ tag: 'p', children: [missing] }];
  if (cited.length === 0) return [...draft, ...note];
  const citations = new Map(
    cited.map(({ mark, name }, at) => [mark, { number: at + 1, title: name, href: null }] as const),
  );
  const items = cited.map(({ name }): DraftNode => ({ tag: 'li', children: [name] }));
  const list: readonly DraftNode[] = [
    { tag: 'h4', children: ['Sources'] },
    { tag: 'ol', children: items },
  ];
  return [...withCitations(draft, citations), ...list, ...note];
}

function outputNodes(output: string | undefined): readonly DraftNode[] {
  if (output === undefined) return [];
  return [
    { tag: 'h4', children: ['Output'] },
    { tag: 'pre', children: [{ tag: 'code', children: [output] }] },
  ];
}

/** Sizes of fonts are in half points, spaces in twentieths of a point. */
const DEFAULTS = { run: { font: 'Calibri', size: 22 }, paragraph: { spacing: { after: 120, line: 276 } } };

const SPACING = { spacing: { before: 80, after: 80 } };

const STYLES = [
  {
    id: styleName('quote'),
    name: 'Quote',
    basedOn: 'Normal',
    quickFormat: true,
    run: { color: '555555' },
    paragraph: SPACING,
  },
  {
    id: styleName('code'),
    name: 'Code',
    basedOn: 'Normal',
    quickFormat: true,
    run: { font: CODE_FONT, size: 18 },
    paragraph: SPACING,
  },
];

/** The numbering of an ordered list. */
function numbering({ reference, level, start }: NumberedList) {
  const hanging = convertInchesToTwip(0.25);
  const style = { paragraph: { indent: { left: hanging * (level + 2), hanging } } };
  const format = { format: LevelFormat.DECIMAL, text: `%${level + 1}.`, alignment: AlignmentType.START };
  return { reference, levels: [{ level, ...format, start, style }] };
}
