/**
 * The text of annotations: values of form fields and free text at their positions, and notes. pdfjs returns annotations as
 * untyped data.
 */
import { elementAt } from '../system/element.js';
import { fieldOf, isRecord, listOf } from '../system/untrusted.js';
import { readable } from './layout/glyph-text.js';
import { textOfPages } from './layout/page-text.js';
import type { TextRun } from './layout/text-run.js';

/** The text of a page, or of its annotations. */
export interface PageContents {
  readonly runs: readonly TextRun[];
  /** Comments with their authors, in the order of the file. */
  readonly notes: readonly string[];
  /** On the last page: names and values of form fields that are on no page. */
  readonly fields?: readonly string[];
}

const NOTES_HEADING = 'Notes on this page:';
const FIELDS_HEADING = 'Form fields without a place on a page:';

/** The kinds of annotations that are not notes, as pdfjs numbers them. */
const LINK = 2;
const FREE_TEXT = 3;
const POPUP = 16;
const WIDGET = 20;
/** Largest em, in points, of a text without a font size. */
const LARGEST_EM = 10;
/** Em as a share of the height of a field; distance between lines in ems. */
const EM_OF_HEIGHT = 0.75;
const LINE_STEP = 1.2;
/** Distance from the middle of a line to its baseline, and average width of a letter, in ems. */
const HALF_LETTER = 0.35;
const LETTER_WIDTH = 0.5;

/** The visible text of annotations. Links, pop-ups, push buttons and signatures have none. */
export function textOfAnnotations(annotations: readonly unknown[]): PageContents {
  const runs: TextRun[] = [];
  const notes: string[] = [];
  for (const annotation of annotations) {
    const kind = fieldOf(annotation, 'annotationType');
    if (kind === WIDGET) runs.push(...runsAt(annotation, valueOf(annotation)));
    else if (kind === FREE_TEXT) runs.push(...runsAt(annotation, contentsOf(annotation) || drawnTextOf(annotation)));
    else if (kind !== LINK && kind !== POPUP) notes.push(...noteOf(annotation));
  }
  return { runs, notes };
}

/**
 * Names and values of form fields whose widgets are on no page, without values that another widget of the field shows.
 *
 * @param fields for each name its widgets, from `getFieldObjects` of pdfjs
 * @param placed ids of all annotations of the pages
 */
export function fieldsWithoutPlace(fields: unknown, placed: ReadonlySet<unknown>): readonly string[] {
  if (!isRecord(fields)) return [];
  return Object.entries(fields).flatMap(([name, widgets]) => {
    const isPlaced = (widget: unknown): boolean => placed.has(fieldOf(widget, 'id'));
    const shown = new Set(['', ...listOf(widgets).filter(isPlaced).map(valueOfWidget)]);
    const values = listOf(widgets).map(valueOfWidget);
    return [...new Set(values)].filter((value) => !shown.has(value)).map((value) => `${name}: ${value}`);
  });
}

/** As `valueOf`, for a widget from `getFieldObjects`, which has other names for the same data. */
function valueOfWidget(widget: unknown): string {
  if (fieldOf(widget, 'hidden') === true || fieldOf(widget, 'password') === true) return '';
  const value = textIn(fieldOf(widget, 'value'));
  switch (fieldOf(widget, 'type')) {
    case 'text':
      return value;
    case 'combobox':
    case 'listbox':
      return displayed(fieldOf(widget, 'items'), value);
    case 'checkbox':
    case 'radiobutton':
      return value !== 'Off' && value === fieldOf(widget, 'exportValues') ? value : '';
    default:
      return '';
  }
}

/** The text of each page: its runs in reading order, then its notes and its fields, each under a heading. */
export function textsOfContents(pages: readonly PageContents[]): readonly string[] {
  const texts = textOfPages(pages.map(({ runs }) => runs));
  return pages.map(({ notes, fields = [] }, index) =>
    withList(withList(elementAt(texts, index), NOTES_HEADING, notes), FIELDS_HEADING, fields),
  );
}

function withList(text: string, heading: string, items: readonly string[]): string {
  if (items.length === 0) return text;
  const lines = items.map((item) =>
    item
      .split(/\r\n?|\n/)
      .map(readable)
      .join('\n'),
  );
  return [text, heading, ...lines].join('\n\n').trim();
}

/**
 * The value of a form field; of a check box or radio button that is on, its export value. For a value that is a stream,
 * which pdfjs does not return, the text of the appearance.
 */
function valueOf(field: unknown): string {
  if (fieldOf(field, 'hidden') === true || fieldOf(field, 'password') === true) return '';
  const value = fieldOf(field, 'fieldValue');
  switch (fieldOf(field, 'fieldType')) {
    case 'Tx':
      return textIn(value) || drawnTextOf(field);
    case 'Ch':
      return listOf(value)
        .map((each) => displayed(fieldOf(field, 'options'), textIn(each)))
        .join('\n');
    case 'Btn':
      return isOn(field, value) ? textIn(value) : '';
    default:
      return '';
  }
}

function displayed(options: unknown, exported: string): string {
  const chosen = listOf(options).find((option) => fieldOf(option, 'exportValue') === exported);
  return textIn(fieldOf(chosen, 'displayValue')) || exported;
}

function isOn(button: unknown, value: unknown): boolean {
  if (value === 'Off') return false;
  if (fieldOf(button, 'checkBox') === true) return value === fieldOf(button, 'exportValue');
  return fieldOf(button, 'radioButton') === true && value === fieldOf(button, 'buttonValue');
}

function noteOf(annotation: unknown): readonly string[] {
  const contents = contentsOf(annotation).trim();
  const author = textIn(fieldOf(fieldOf(annotation, 'titleObj'), 'str')).trim();
  if (contents === '') return [];
  return [author === '' ? contents : `${author}: ${contents}`];
}

/** The plain text, otherwise the rich text without markup. */
function contentsOf(annotation: unknown): string {
  const [plain, rich] = ['contentsObj', 'richText'].map((name) => textIn(fieldOf(fieldOf(annotation, name), 'str')));
  return plain || rich || '';
}

/** The text of the appearance. */
function drawnTextOf(annotation: unknown): string {
  return listOf(fieldOf(annotation, 'textContent')).map(textIn).join('\n');
}

function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Places a text in the rectangle of an annotation: one line in the middle, several from the top. */
function runsAt(annotation: unknown, text: string): readonly TextRun[] {
  const rect = listOf(fieldOf(annotation, 'rect')).map(Number);
  const lines = text.split(/\r\n?|\n/).filter((line) => line.trim() !== '');
  if (rect.length !== 4 || lines.length === 0) return [];
  const angle = angleOf(annotation);
  const sides = [elementAt(rect, 2) - elementAt(rect, 0), elementAt(rect, 3) - elementAt(rect, 1)] as const;
  const [width, height] = angle % 180 === 0 ? sides : [sides[1], sides[0]];
  const size = sizeOf(annotation, height);
  const highest = lines.length === 1 ? height / 2 - HALF_LETTER * size : height - size;
  return lines.map((line, index) => ({
    text: line,
    ...placeIn(rect, angle, highest - index * LINE_STEP * size),
    width: Math.min(width, line.length * LETTER_WIDTH * size),
    size,
    angle,
  }));
}

function angleOf(annotation: unknown): number {
  const angle = fieldOf(annotation, 'rotation');
  return typeof angle === 'number' && angle % 90 === 0 ? ((angle % 360) + 360) % 360 : 0;
}

function sizeOf(annotation: unknown, height: number): number {
  const size = fieldOf(fieldOf(annotation, 'defaultAppearanceData'), 'fontSize');
  return typeof size === 'number' && size > 0 ? size : Math.min(LARGEST_EM, height * EM_OF_HEIGHT);
}

/** The start of a line at a height above the lower side. In PDF, y grows upwards; in runs, downwards. */
function placeIn(rect: readonly number[], angle: number, above: number): Pick<TextRun, 'x' | 'baseline'> {
  const [left = 0, bottom = 0, right = 0, top = 0] = rect;
  switch (angle) {
    case 90:
      return { x: right - above, baseline: -bottom };
    case 180:
      return { x: right, baseline: above - top };
    case 270:
      return { x: left + above, baseline: -top };
    default:
      return { x: left, baseline: -bottom - above };
  }
}
