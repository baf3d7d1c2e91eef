/** Writes the blocks of a draft: headings, paragraphs, lists, quotes, code, tables and footnotes. */
import type { FileChild, IParagraphOptions, IRunOptions, ParagraphChild } from 'docx';
import {
  AlignmentType,
  ExternalHyperlink,
  FootnoteReferenceRun,
  HeadingLevel,
  Paragraph,
  Table,
  TableCell,
  TableRow,
  TextRun,
  WidthType,
  convertInchesToTwip,
} from 'docx';
import type { DraftElement, DraftNode, DraftTag } from '../draft/draft-tree.js';
import { xmlText } from './xml-text.js';

export const CODE_FONT = 'Courier New';
/** Width of the text of an A4 page, in twentieths of a point. */
const TEXT_WIDTH = 9_026;
/** The deepest level of lists that Word has. */
const MAX_LEVEL = 8;
/**
 * Most ordered lists that Word numbers, because the package docx searches the whole text once for each. The items of further
 * lists begin with their number as text.
 */
const MAX_NUMBERED = 500;
const STEP = convertInchesToTwip(0.25);

/** The ids of the styles of paragraphs. */
export function styleName(kind: 'quote' | 'code'): string {
  return `Draft${kind}`;
}

/** An ordered list that Word numbers. */
export interface NumberedList {
  readonly reference: string;
  readonly level: number;
  /** The number of its first item. */
  readonly start: number;
}

/** Where a block stands. */
interface BlockContext {
  /** Number of quotes around it. */
  readonly quotes: number;
  /** Level of the list around it, or -1 outside of lists. */
  readonly level: number;
  /** Footnotes contain only paragraphs and no footnotes. */
  readonly isNote: boolean;
  /** The bullet or number of its item, for the first paragraph that takes it. */
  readonly takeMarker: () => IParagraphOptions;
}

const TOP: BlockContext = { quotes: 0, level: -1, isNote: false, takeMarker: () => ({}) };

const HEADINGS: Partial<Record<DraftTag, IParagraphOptions>> = {
  h3: { heading: HeadingLevel.HEADING_1 },
  h4: { heading: HeadingLevel.HEADING_2 },
  h5: { heading: HeadingLevel.HEADING_3 },
  h6: { heading: HeadingLevel.HEADING_4 },
};

const RUNS: Partial<Record<DraftTag, IRunOptions>> = {
  strong: { bold: true },
  em: { italics: true },
  s: { strike: true },
  code: { font: CODE_FONT },
  sup: { superScript: true },
  cite: { superScript: true },
  mark: { superScript: true, bold: true },
};

const INLINE: ReadonlySet<string> = new Set(['a', 'strong', 'em', 's', 'code', 'br', 'sup', 'input', 'cite', 'mark']);

const ALIGNS = { left: AlignmentType.LEFT, center: AlignmentType.CENTER, right: AlignmentType.RIGHT };

export class DraftWriter {
  /** Footnotes by label: the first definition of each that the text refers to. */
  readonly #defined: ReadonlyMap<string, DraftElement>;
  readonly #footnotes: ReadonlySet<DraftElement>;
  /** The written footnotes. Word numbers them from 1. */
  readonly #written: { readonly children: Paragraph[] }[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #numbered: NumberedList[] = [];

  constructor(tree: readonly DraftNode[]) {
    this.#defined = referencesIn(tree);
    this.#footnotes = new Set(this.#defined.values());
  }

  blocks(nodes: readonly DraftNode[]): FileChild[] {
    return this.#blocks(nodes, TOP);
  }

  footnotes(): Readonly<Record<string, { readonly children: Paragraph[] }>> {
    return Object.fromEntries(this.#written.map((note, index) => [String(index + 1), note]));
  }

  /** Each needs a definition of its own, because Word continues the numbers of lists that share one. */
  numberedLists(): readonly NumberedList[] {
    return this.#numbered;
  }

  /** Texts between blocks become paragraphs. */
  #blocks(nodes: readonly DraftNode[], place: BlockContext): FileChild[] {
    const blocks: FileChild[] = [];
    let texts: DraftNode[] = [];
    const endParagraph = (): void => {
      if (texts.length > 0) blocks.push(this.#paragraph(texts, place));
      texts = [];
    };
    for (const node of nodes) {
      if (typeof node === 'string' || INLINE.has(node.tag)) texts.push(node);
      else {
        endParagraph();
        blocks.push(...this.#block(node, place));
      }
    }
    endParagraph();
    return blocks;
  }

  #block(node: DraftElement, place: BlockContext): FileChild[] {
    switch (node.tag) {
      case 'ul':
      case 'ol':
        return this.#list(node, place);
      case 'blockquote':
        return this.#blocks(node.children, { ...place, quotes: place.quotes + 1 });
      case 'pre':
        return [this.#code(node, place)];
      case 'hr':
        return [new Paragraph({ thematicBreak: true })];
      case 'table':
        return place.isNote ? this.#blocks(node.children, place) : [this.#table(node, place)];
      case 'aside':
        return this.#footnotes.has(node) ? [] : this.#blocks(node.children, place);
      case 'p':
      case 'h3':
      case 'h4':
      case 'h5':
      case 'h6':
        return [this.#paragraph(node.children, place, HEADINGS[node.tag])];
      default:
        return this.#blocks(node.children, place);
    }
  }

  #paragraph(nodes: readonly DraftNode[], place: BlockContext, options: IParagraphOptions = {}): Paragraph {
    const quote = place.quotes > 0 ? { style: styleName('quote') } : {};
    const left = STEP * (place.quotes + (place.level < 0 ? 0 : place.level + 2));
    const marker = place.takeMarker();
    // A marked paragraph has the indent of its list.
    const isIndented = left > 0 && Object.keys(marker).length === 0;
    const children = nodes.flatMap((node) => this.#inline(node, {}, place));
    return new Paragraph({ ...quote, ...(isIndented && { indent: { left } }), ...marker, ...options, children });
  }

  #list({ tag, start = 1, children }: DraftElement, place: BlockContext): FileChild[] {
    const level = Math.min(place.level + 1, MAX_LEVEL);
    const isText = tag === 'ol' && this.#numbered.length === MAX_NUMBERED;
    const itemMarker = isText ? {} : tag === 'ol' ? this.#numbering(start, level) : { bullet: { level } };
    return children.flatMap((item, index) => {
      let marker: IParagraphOptions = itemMarker;
      const takeMarker = (): IParagraphOptions => {
        const taken = marker;
        marker = {};
        return taken;
      };
      const texts = isText ? [`${start + index}. `, ...childrenOf(item)] : childrenOf(item);
      return this.#blocks(texts, { ...place, level, takeMarker });
    });
  }

  #numbering(start: number, level: number): IParagraphOptions {
    // The package replaces the reference wherever it finds it, so it begins with a character that no draft contains.
    const reference = `\u0001${this.#numbered.length}`;
    this.#numbered.push({ reference, level, start });
    return { numbering: { reference, level } };
  }

  #code(node: DraftElement, place: BlockContext): Paragraph {
    const lines = textOf(node).split('\n');
    const children = lines.map((line, index) => new TextRun({ text: xmlText(line), ...(index > 0 && { break: 1 }) }));
    const indent = { left: STEP * (place.quotes + place.level + 1) };
    return new Paragraph({
      style: styleName('code'),
      indent,
      shading: { fill: 'F2F2F2' },
      ...place.takeMarker(),
      children,
    });
  }

  #table(node: DraftElement, place: BlockContext): Table {
    const rows = rowsIn(node);
    const columns = Math.max(1, ...rows.map(({ children }) => children.length));
    const cell = (each: DraftNode): TableCell => {
      const { tag, align = 'left' } = typeof each === 'string' ? { tag: 'td' } : each;
      const bold = tag === 'th' ? { bold: true } : {};
      const children = childrenOf(each).flatMap((node) => this.#inline(node, bold, place));
      return new TableCell({ children: [new Paragraph({ alignment: ALIGNS[align], children })] });
    };
    return new Table({
      width: { size: 100, type: WidthType.PERCENTAGE },
      columnWidths: Array.from({ length: columns }, () => Math.floor(TEXT_WIDTH / columns)),
      rows: rows.map((row) => {
        const isHead = row.children.some((each) => typeof each !== 'string' && each.tag === 'th');
        return new TableRow({ tableHeader: isHead, children: row.children.map(cell) });
      }),
    });
  }

  #inline(node: DraftNode, run: IRunOptions, place: BlockContext): ParagraphChild[] {
    if (typeof node === 'string') return [new TextRun({ ...run, text: xmlText(node) })];
    const { tag, children, href, isChecked } = node;
    if (tag === 'br') return [new TextRun({ ...run, break: 1 })];
    if (tag === 'input') return [new TextRun({ ...run, text: isChecked === true ? '☑ ' : '☐ ' })];
    if (tag === 'sup') {
      const note = place.isNote ? null : this.#footnote(noteLabel(node));
      if (note !== null) return [note];
    }
    const inside = { ...run, ...RUNS[tag] };
    if (href === undefined) return children.flatMap((each) => this.#inline(each, inside, place));
    const linked = children.flatMap((each) => this.#inline(each, { ...inside, style: 'Hyperlink' }, place));
    return [new ExternalHyperlink({ link: xmlText(href), children: linked })];
  }

  /** The reference to a footnote, or null if there is none with this label. A second one has a note that names the first. */
  #footnote(label: string): ParagraphChild | null {
    const defined = this.#defined.get(label);
    if (defined === undefined) return null;
    const first = this.#numbers.get(label);
    const index = this.#written.length;
    if (first !== undefined) this.#written.push({ children: [new Paragraph(`See note ${first}.`)] });
    else {
      this.#numbers.set(label, index + 1);
      const blocks = this.#blocks(defined.children.slice(1), { ...TOP, isNote: true });
      this.#written.push({ children: blocks.filter((block) => block instanceof Paragraph) });
    }
    return new FootnoteReferenceRun(index + 1);
  }
}

function textOf(node: DraftNode): string {
  return typeof node === 'string' ? node : node.children.map(textOf).join('');
}

/** The label of a reference. */
export function noteLabel({ children: [label] }: DraftElement): string {
  return typeof label === 'string' ? label : '';
}

/** The first definition of each footnote that the text outside of footnotes refers to, by label. */
export function referencesIn(tree: readonly DraftNode[]): ReadonlyMap<string, DraftElement> {
  const defined = new Map<string, DraftElement>();
  const referred = new Set<string>();
  const walk = (node: DraftNode): void => {
    if (typeof node === 'string') return;
    const [mark] = node.children;
    if (node.tag === 'sup') referred.add(noteLabel(node));
    else if (node.tag !== 'aside' || typeof mark !== 'object') node.children.forEach(walk);
    else if (!defined.has(noteLabel(mark))) defined.set(noteLabel(mark), node);
  };
  tree.forEach(walk);
  return new Map([...defined].filter(([label]) => referred.has(label)));
}

/** Most columns of a table that Word opens. */
const MAX_COLUMNS = 63;

/** The rows of a table; the last cell of a row that is too long has the texts of the rest. */
export function rowsIn({ tag, children }: DraftElement): readonly DraftElement[] {
  return children.flatMap((each) => {
    if (typeof each === 'string') return [];
    return each.tag === 'tr' && tag !== 'tr' ? [{ ...each, children: cellsOf(each) }] : rowsIn(each);
  });
}

function cellsOf({ children }: DraftElement): readonly DraftNode[] {
  if (children.length <= MAX_COLUMNS) return children;
  const [last = '', ...rest] = children.slice(MAX_COLUMNS - 1);
  const texts = rest.flatMap((each) => [' | ', ...childrenOf(each)]);
  return [...children.slice(0, MAX_COLUMNS - 1), { tag: 'td', children: [...childrenOf(last), ...texts] }];
}

export function childrenOf(node: DraftNode): readonly DraftNode[] {
  return typeof node === 'string' ? [node] : node.children;
}
