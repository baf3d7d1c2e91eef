/** A strict parser of Prometheus' text format 0.0.4. It throws where a scraper would reject or misread a page. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: Sample[];
}

export type Families = ReadonlyMap<string, Family>;

const HELP = /^# HELP ([a-zA-Z_:][\w:]*) (.+)$/;
const TYPE = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary)$/;
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
/** What the names of a family's samples end with. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

/** The families of a page, by name. */
export function parseMetrics(text: string): Families {
  if (!text.endsWith('\n')) throw new Error('The last line has no line feed');
  const families = new Map<string, Family>();
  const lines = text.split('\n').filter((line) => line !== '');
  let current: Family | null = null;
  for (const [at, line] of lines.entries()) {
    if (HELP.test(line)) continue;
    if (line.startsWith('#')) current = added(families, line, lines[at - 1] ?? '');
    else if (current === null) throw new Error(`A sample without a family: ${line}`);
    else addSample(current, sampleIn(line));
  }
  for (const family of families.values()) if (family.type === 'histogram') checkHistogram(family);
  return families;
}

/** The family that a TYPE line begins, after its HELP line. */
function added(families: Map<string, Family>, line: string, before: string): Family {
  const [, name = '', type = ''] = TYPE.exec(line) ?? [];
  const [, described, help = ''] = HELP.exec(before) ?? [];
  if (name === '' || described !== name) throw new Error(`A type without its help: ${line}`);
  if (families.has(name)) throw new Error(`A family twice: ${name}`);
  const family = { name, help, type, samples: [] };
  families.set(name, family);
  return family;
}

function addSample({ name, type, samples }: Family, sample: Sample): void {
  if (ENDS[type]?.some((end) => sample.name === name + end) !== true)
    throw new Error(`A sample outside its family: ${sample.name} in ${name}`);
  if (samples.some((each) => keyOf(each) === keyOf(sample))) throw new Error(`A series twice: ${keyOf(sample)}`);
  samples.push(sample);
}

function keyOf({ name, labels }: Pick<Sample, 'name' | 'labels'>): string {
  return `${name} ${JSON.stringify(Object.entries(labels).sort())}`;
}

function sampleIn(line: string): Sample {
  const [, name, labelText = '', number = ''] = SAMPLE.exec(line) ?? [];
  if (name === undefined) throw new Error(`Not a sample: ${line}`);
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number);
  if (Number.isNaN(value) && !/^nan$/i.test(number)) throw new Error(`Not a number: ${line}`);
  return { name, labels: labelsIn(labelText, line), value };
}

function labelsIn(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  for (let at = 0; at < text.length; at = LABEL.lastIndex) {
    const [, label, quoted = ''] = LABEL.exec(text) ?? [];
    if (label === undefined || label in labels) throw new Error(`Labels cannot be read: ${line}`);
    labels[label] = quoted.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
  }
  return labels;
}

/** Checks that the buckets of each series ascend and end at +Inf with its count, and that it has a sum. */
function checkHistogram({ name, samples }: Family): void {
  const seriesOf = ({ labels: { le: _, ...own } }: Sample): string => keyOf({ name, labels: own });
  for (const key of new Set(samples.map(seriesOf))) {
    const all = samples.filter((each) => seriesOf(each) === key);
    const buckets = all.filter((each) => each.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le } }) => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)));
    const counts = buckets.map(({ value }) => value);
    const count = all.find((each) => each.name === `${name}_count`)?.value;
    const isEnded = bounds.at(-1) === Number.POSITIVE_INFINITY && counts.at(-1) === count;
    const hasSum = all.some((each) => each.name === `${name}_sum`);
    const isAscending = bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] ?? bound));
    const isCumulative = counts.every((each, at) => at === 0 || each >= (counts[at - 1] ?? each));
    if (![isEnded, hasSum, isAscending, isCumulative].every(Boolean)) throw new Error(`Not a histogram: ${key}`);
  }
}

/** The sum of the samples of a name that have these labels; 0 without one. */
export function valueOf(families: Families, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const all = [...families.values()].flatMap(({ samples }) => samples).filter((sample) => sample.name === name);
  const wanted = Object.entries(labels);
  const found = all.filter((sample) => wanted.every(([label, value]) => sample.labels[label] === value));
  return found.reduce((sum, { value }) => sum + value, 0);
}
