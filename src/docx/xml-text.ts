/** Characters that XML 1.0 cannot contain (section 2.2): with one of them Word refuses the whole file. */
const NOT_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;

/** A text with U+FFFD in place of each character that XML cannot contain. */
export function xmlText(text: string): string {
  return text.replace(NOT_IN_XML, '\ufffd');
}
