/**
 * The text of a page's annotations, which its content does not hold: values of form fields and free text, at their
 * places, and notes. pdfjs returns annotations as untyped data.
 */
import { elementAt } from '../system/element.js';
import { fieldOf, isRecord, listOf } from '../system/untrusted.js';
import { readable } from './layout/glyph-text.js';
import { textOfPages } from './layout/page-text.js';
import type { TextRun } from './layout/text-run.js';

/** Text of a page, or of its annotations alone. */
export interface PageContents {
  readonly runs: readonly TextRun[];
  /** Comments with their authors, in the order of the file. */
  readonly notes: readonly string[];
  /** Names and values of form fields that are on no page. They stand on the last page. */
  readonly fields?: readonly string[];
}

const NOTES_HEADING = 'Notes on this page:';
const FIELDS_HEADING = 'Form fields without a place on a page:';

/** Numbers of pdfjs for the kinds of annotations that are not comments. */
const LINK = 2;
const FREE_TEXT = 3;
const POPUP = 16;
const WIDGET = 20;
/** Largest em of a field that fits its text to its height, and of free text without a size, in points. */
const LARGEST_EM = 10;
/** Share of a field's height that its letters take; ems from one line to the next. */
const EM_OF_HEIGHT = 0.75;
const LINE_STEP = 1.2;
/** Ems from a line's middle down to its baseline; the average width of a letter in ems. */
const HALF_LETTER = 0.35;
const LETTER_WIDTH = 0.5;

/** The text that a reader sees in the annotations of a page. Links, pop-ups, push buttons and signatures have none. */
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
 * Names and values of the form fields whose widgets pdfjs did not give with any page. A value that another widget of
 * the field shows on a page is left out.
 * @param fields of pdfjs's `getFieldObjects`: for each name, its widgets
 * @param placed the ids of all annotations of the pages
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

/** As `valueOf`, for what `getFieldObjects` tells of a field, which has other names there. */
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

/** The text of each page: its runs in reading order, then its notes and fields under headings of their own. */
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
 * The value that a form field shows; of a check box or radio button that is on, the value it exports. pdfjs does not
 * give a value that is a stream; the field's appearance shows it.
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

/** Its plain text, else its rich text without the marks. */
function contentsOf(annotation: unknown): string {
  const [plain, rich] = ['contentsObj', 'richText'].map((name) => textIn(fieldOf(fieldOf(annotation, name), 'str')));
  return plain || rich || '';
}

/** The text in an annotation's appearance. */
function drawnTextOf(annotation: unknown): string {
  return listOf(fieldOf(annotation, 'textContent')).map(textIn).join('\n');
}

function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A text in the rectangle of an annotation: a single line in its middle, several from its top. */
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

/** The start of a line at a height above the lower side of a rectangle. In PDF y grows upwards, in runs downwards. */
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
