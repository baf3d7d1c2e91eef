/** Labels for models: bounded, because clients may name any model. */

/** Models that get a label of their own. Each costs about 20 series. */
const MAX_MODELS = 100;
/** Longest name of a model with a label of its own, in characters. A blueprint may hold one of 256 KiB. */
const MAX_NAME = 200;
/** The label of all other models. */
const OTHER = 'other';

/** The provider and the model, for the labels `provider` and `model`. */
export type ModelLabel = readonly [provider: string, model: string];

export class ModelLabels {
  readonly #providers: readonly string[];
  readonly #answered = new Map<string, ModelLabel>();

  /** @param providers names of the configured providers, the default first */
  constructor(providers: readonly string[]) {
    this.#providers = providers;
  }

  /** Gives a model that has answered its own label, while there is room. */
  onAnswered(name: string): ModelLabel {
    const label = this.of(name);
    if (label[1] !== OTHER || this.#answered.size >= MAX_MODELS) return label;
    const [provider] = label;
    const model = name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name;
    if (model.length > MAX_NAME) return label;
    const own = [provider, model] as const;
    this.#answered.set(name, own);
    return own;
  }

  /** The models with a label of their own. */
  own(): readonly ModelLabel[] {
    return [...this.#answered.values()];
  }

  /** @param name `provider/model`, or a model of the only provider */
  of(name: string): ModelLabel {
    return this.#answered.get(name) ?? [this.#providerOf(name), OTHER];
  }

  #providerOf(name: string): string {
    const provider = name.slice(0, Math.max(0, name.indexOf('/')));
    return this.#providers.includes(provider) ? provider : (this.#providers[0] ?? OTHER);
  }
}
