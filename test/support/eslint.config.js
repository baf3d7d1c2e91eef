/**
 * Lint rules. ESLint finds its files from the folder it is started in: run it from the root, as `npm run lint` does.
 * Every finding counts, warnings too (`--max-warnings 0`), and a disable comment that disables nothing is a finding.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What deterministic code is handed as an `Ambient` (architecture, invariant 9). */
const DETERMINISTIC = ['eventsourcing', 'graph', 'run', 'council', 'blueprint', 'projections'].map(
  (name) => `src/${name}/**`,
);

const AMBIENT_GLOBALS = {
  process: 'Take it as an argument: only main.ts and config.ts know the process.',
  setTimeout: 'Use system.after.',
  setInterval: 'Use system.after.',
  setImmediate: 'Use system.after.',
  performance: 'Use system.monotonicMs.',
  crypto: 'Use system.uuid or system.sha256.',
  fetch: 'The network is reached through a port.',
};

const AMBIENT_PROPERTIES = [
  { object: 'Date', property: 'now', message: 'Use system.now or system.monotonicMs.' },
  { object: 'Math', property: 'random', message: 'Use system.random.' },
];

const AMBIENT_SYNTAX = [
  {
    selector: "NewExpression[callee.name='Date'][arguments.length=0], CallExpression[callee.name='Date']",
    message: 'Use system.now: this reads the clock.',
  },
];

const FORCED_TYPES = [
  {
    selector: "TSAsExpression > TSAsExpression[typeAnnotation.type='TSUnknownKeyword']",
    message: 'Narrow with a check or a schema: "as unknown as" hides whatever is wrong.',
  },
];

const HELD_BACK_TESTS = [
  {
    selector: 'MemberExpression[object.name=/^(describe|context|it|specify)$/][property.name=/^(only|skip)$/]',
    message: 'Every test runs: delete it or mend it.',
  },
  {
    selector: "MemberExpression[object.type='ThisExpression'][property.name='skip']",
    message: 'Every test runs: delete it or mend it.',
  },
];

const SLEEPS = Object.fromEntries(
  ['setTimeout', 'setInterval'].map((name) => [name, 'Wait for a condition, not for a time.']),
);

const SLEEP_IMPORTS = ['node:timers/promises', 'timers/promises'].map((name) => ({
  name,
  importNames: ['setTimeout', 'setInterval', 'scheduler'],
  message: 'Wait for a condition, not for a time.',
}));

/** Rules of the preset that find nothing wrong in this house. */
const NOISE = {
  // Numbers in messages are what messages are made of.
  '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
  // `() => void f()` says no more than `() => f()`.
  '@typescript-eslint/no-confusing-void-expression': 'off',
  // Ports are records of functions that use no `this`; they are taken apart on purpose.
  '@typescript-eslint/unbound-method': 'off',
  // `async` without `await` turns a throw into a rejection, which a port's promise must be.
  '@typescript-eslint/require-await': 'off',
  // Lengths count code points (contract, section 2): spreading a text is how they are counted.
  '@typescript-eslint/no-misused-spread': ['error', { allow: ['string'] }],
  // There are no enums (erasableSyntaxOnly), and #private fields make classes nominal: the compiler refuses what these
  // two look for. They took a quarter of the time.
  '@typescript-eslint/no-unsafe-enum-assignment': 'off',
  '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
  // What was caught as unknown may be handed on as it came.
  '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
  // The compiler refuses them (noUnusedLocals, noUnusedParameters); modules that it does not check are asked below.
  '@typescript-eslint/no-unused-vars': 'off',
};

export default defineConfig(
  // The requests are compiled by their test, with types that are not there before; what peers import is not installed.
  { ignores: ['dist/**', 'src/generated/**', 'test/http/openapi-requests.ts', 'test/bench/peers/**'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: root } },
    rules: {
      eqeqeq: 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-restricted-syntax': ['error', ...FORCED_TYPES],
      complexity: ['error', { max: 12, variant: 'modified' }],
      'max-depth': ['error', 4],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/consistent-type-exports': 'error',
      // A written default is an answer for the other cases; a switch without one must name them all.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      ...NOISE,
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: {
      'max-lines': ['warn', { max: 400 }],
      'max-lines-per-function': ['error', { max: 60 }],
      'no-console': 'error',
    },
  },
  {
    files: DETERMINISTIC,
    rules: {
      'no-restricted-globals': ['error', { globals: named(AMBIENT_GLOBALS), checkGlobalObject: true }],
      'no-restricted-properties': ['error', ...AMBIENT_PROPERTIES],
      'no-restricted-syntax': ['error', ...FORCED_TYPES, ...AMBIENT_SYNTAX],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', ...FORCED_TYPES, ...HELD_BACK_TESTS],
      // chai's assertions are expressions: expect(x).to.be.true.
      '@typescript-eslint/no-unused-expressions': 'off',
      // It takes long, and what a test uses is used by nobody else.
      '@typescript-eslint/no-deprecated': 'off',
    },
  },
  {
    files: ['test/**/*.test.ts'],
    rules: {
      'no-restricted-globals': ['error', { globals: named(SLEEPS), checkGlobalObject: true }],
      'no-restricted-imports': ['error', { paths: SLEEP_IMPORTS }],
    },
  },
  {
    files: ['**/*.js', '**/*.mjs'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: { '@typescript-eslint/no-unused-vars': 'error' },
  },
);

function named(messages) {
  return Object.entries(messages).map(([name, message]) => ({ name, message }));
}
