import { allOptions, type CommandNode, quote, valueOptions } from './command-tree.js';

/** The script uses `at` because zsh reserves `path`. */
export function buildZshScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== '').map(({ path }) => quote(` ${path}`));
  return `#compdef headgate
# Completion of headgate for zsh. Made by: headgate completion zsh
_headgate() {
  local at='' before='' word i
  local -a list
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    if _headgate_takes_value "$before"; then before=''; continue; fi
    before="$word"
    case "$at $word" in
      ${paths.join('|')}) at="$at $word" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
${valueCases(tree)}
  esac
  if _headgate_takes_value "\${words[CURRENT-1]}"; then _files; return; fi
  case "$at" in
${tree.map(wordCase).join('\n')}
  esac
  _describe 'headgate' list
}
_headgate_takes_value() {
  case "$1" in
    ${valueOptions(tree).join('|')}) return 0 ;;
  esac
  return 1
}
if [ "$funcstack[1]" = '_headgate' ]; then _headgate "$@"; else compdef _headgate headgate; fi
`;
}

function valueCases(tree: readonly CommandNode[]): string {
  return allOptions(tree)
    .filter(({ choices }) => choices.length > 0)
    .map(
      ({ long, choices }) => `    ${long}) list=(${choices.map(quote).join(' ')}); _describe 'value' list; return ;;`,
    )
    .join('\n');
}

function wordCase({ path, commands, choices, options }: CommandNode): string {
  const words = [
    ...commands.map(({ word, help }) => describe(word, help)),
    ...choices.map(quote),
    ...options.map(({ long, help }) => describe(long, help)),
  ];
  return `    ${quote(path === '' ? '' : ` ${path}`)}) list=(${words.join(' ')}) ;;`;
}

/** A colon separates the word from its help. */
function describe(word: string, help: string): string {
  return quote(`${word.replaceAll(':', '\\:')}:${help}`);
}
