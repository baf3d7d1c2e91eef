/**
 * The type check and the lint, as `tsc --noEmit` and `eslint` would do them, on the same programs: both ask one type
 * checker, and what it finds out for one it need not find out again for the other. The console, which runs in browsers,
 * is a program of its own.
 */
import { ESLint } from 'eslint';
import ts from 'typescript';

const FOLDERS = ['src', 'test', 'schemas'];

const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (fault) => say(messagesOf([fault])) };
const [main, console] = ['tsconfig.json', 'src/console/tsconfig.json'].map(checkedProgram);

const eslint = new ESLint({
  overrideConfigFile: 'test/support/eslint.config.js',
  overrideConfig: [lintedBy(main, ['**/*.ts']), lintedBy(console, ['src/console/**/*.{ts,tsx}'])],
});
const results = await eslint.lintFiles(FOLDERS);
const { format } = await eslint.loadFormatter('stylish');
// Warnings count.
if (results.some(({ messages }) => messages.length > 0)) say(await format(results));

function checkedProgram(file) {
  const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(file, {}, host);
  const program = ts.createProgram({ rootNames: fileNames, options, configFileParsingDiagnostics: errors });
  const mistyped = ts.getPreEmitDiagnostics(program);
  if (mistyped.length > 0) say(messagesOf(mistyped));
  return program;
}

function lintedBy(program, files) {
  return { files, languageOptions: { parserOptions: { projectService: false, programs: [program] } } };
}

function messagesOf(diagnostics) {
  return ts.formatDiagnosticsWithColorAndContext(diagnostics, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => process.cwd(),
    getNewLine: () => '\n',
  });
}

function say(text) {
  process.stdout.write(text);
  process.exitCode = 1;
}
