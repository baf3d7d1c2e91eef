/**
 * The type check and the lint, as `tsc --noEmit` and `eslint` would do them, on one program: both ask the same type
 * checker, and what it finds out for one it need not find out again for the other.
 */
import { ESLint } from 'eslint';
import ts from 'typescript';

const FOLDERS = ['src', 'test', 'schemas'];

const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (fault) => say(messagesOf([fault])) };
const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile('tsconfig.json', {}, host);
const program = ts.createProgram({ rootNames: fileNames, options, configFileParsingDiagnostics: errors });
const mistyped = ts.getPreEmitDiagnostics(program);
if (mistyped.length > 0) say(messagesOf(mistyped));

const eslint = new ESLint({
  overrideConfigFile: 'test/support/eslint.config.js',
  overrideConfig: {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: false, programs: [program] } },
  },
});
const results = await eslint.lintFiles(FOLDERS);
const { format } = await eslint.loadFormatter('stylish');
// Warnings count.
if (results.some(({ messages }) => messages.length > 0)) say(await format(results));

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
