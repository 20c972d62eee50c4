import { type CommandNode, type CompletionOption, valueOptions } from './command-tree.js';

export function buildFishScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== '').map(({ path }) => quote(path));
  return `# Completion of headgate for fish. Made by: headgate completion fish
function __headgate_at
    set -l at
    set -l before ''
    for word in (commandline -opc)[2..]
        if contains -- $before ${valueOptions(tree).join(' ')}
            set before ''
            continue
        end
        set before $word
        if contains -- (string join ' ' $at $word) ${paths.join(' ')}
            set at $at $word
        end
    end
    test (string join ' ' $at) = "$argv[1]"
end
complete -c headgate -f
${tree.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ path, commands, choices, options }: CommandNode): readonly string[] {
  const here = `complete -c headgate -n ${quote(`__headgate_at ${quote(path)}`)}`;
  return [
    ...commands.map(({ word, help }) => `${here} -a ${quote(word)} -d ${quote(help)}`),
    ...choices.map((choice) => `${here} -a ${quote(choice)}`),
    ...options.map((option) => `${here} ${describeOption(option)}`),
  ];
}

function describeOption({ long, short, help, takesValue, choices }: CompletionOption): string {
  const names = `${short === null ? '' : `-s ${short.slice(1)} `}-l ${long.slice(2)}`;
  const values = choices.length > 0 ? ` -xa ${quote(choices.join(' '))}` : takesValue ? ' -r' : '';
  return `${names}${values} -d ${quote(help)}`;
}

/** fish escapes inside single quotes by a backslash, unlike other shells. */
function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll(`'`, `\\'`)}'`;
}
