/** Types for what this folder uses of the package docx, because TypeScript cannot resolve the package's own under `nodenext`. */

declare module 'docx' {
  /** The base of all elements, with a field that tells them from other objects. */
  class Element {
    readonly rootKey: string;
  }

  export class TextRun extends Element {
    constructor(options: IRunOptions);
  }
  export class ExternalHyperlink extends Element {
    constructor(options: { readonly link: string; readonly children: readonly ParagraphChild[] });
  }
  export class FootnoteReferenceRun extends Element {
    constructor(id: number);
  }
  export type ParagraphChild = TextRun | ExternalHyperlink | FootnoteReferenceRun;

  export interface IRunOptions {
    readonly text?: string;
    /** Number of line breaks before the text. */
    readonly break?: number;
    readonly bold?: boolean;
    readonly italics?: boolean;
    readonly strike?: boolean;
    readonly superScript?: boolean;
    readonly font?: string;
    readonly style?: string;
  }

  export interface IParagraphOptions {
    readonly heading?: string;
    readonly style?: string;
    readonly alignment?: string;
    readonly indent?: { readonly left: number };
    readonly bullet?: { readonly level: number };
    readonly numbering?: { readonly reference: string; readonly level: number };
    readonly shading?: { readonly fill: string };
    readonly thematicBreak?: boolean;
    readonly children?: readonly ParagraphChild[];
  }

  export class Paragraph extends Element {
    constructor(options: string | IParagraphOptions);
  }
  export class TableCell extends Element {
    constructor(options: { readonly children: readonly Paragraph[] });
  }
  export class TableRow extends Element {
    constructor(options: { readonly tableHeader: boolean; readonly children: readonly TableCell[] });
  }
  export class Table extends Element {
    constructor(options: {
      readonly width: { readonly size: number; readonly type: string };
      readonly columnWidths: readonly number[];
      readonly rows: readonly TableRow[];
    });
  }
  export type FileChild = Paragraph | Table;

  export class Document {
    readonly Styles: object;
    constructor(options: {
      readonly title: string;
      readonly creator: string;
      readonly customProperties: readonly { readonly name: string; readonly value: string }[];
      readonly styles: object;
      readonly numbering: { readonly config: readonly object[] };
      readonly footnotes: Readonly<Record<string, { readonly children: readonly Paragraph[] }>>;
      readonly sections: readonly { readonly children: readonly FileChild[] }[];
    });
  }

  export const Packer: { toBuffer(document: Document): Promise<Uint8Array> };
  export const AlignmentType: Readonly<Record<'LEFT' | 'CENTER' | 'RIGHT' | 'START', string>>;
  export const HeadingLevel: Readonly<Record<`HEADING_${1 | 2 | 3 | 4}`, string>>;
  export const LevelFormat: Readonly<Record<'DECIMAL', string>>;
  export const WidthType: Readonly<Record<'PERCENTAGE', string>>;
  export function convertInchesToTwip(inches: number): number;
}
