import { allOptions, type CommandNode, quote, valueOptions } from './command-tree.js';

export function buildBashScript(tree: readonly CommandNode[]): string {
  return `# Completion of headgate for bash. Made by: headgate completion bash
_headgate() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at='' before='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if _headgate_takes_value "$before"; then before=''; continue; fi
    before="$word"
    case "$at $word" in
      ${paths(tree)}) at="$at $word" ;;
    esac
  done
  case "$prev" in
${valueCases(tree)}
  esac
  if _headgate_takes_value "$prev"; then return; fi
  case "$at" in
${wordCases(tree)}
  esac
}
_headgate_takes_value() {
  case "$1" in
    ${valueOptions(tree).join('|')}) return 0 ;;
  esac
  return 1
}
complete -o default -F _headgate headgate
`;
}

/** Every path except the empty one. Each begins with a space, because the script joins words that way. */
function paths(tree: readonly CommandNode[]): string {
  return tree
    .filter(({ path }) => path !== '')
    .map(({ path }) => quote(` ${path}`))
    .join('|');
}

function valueCases(tree: readonly CommandNode[]): string {
  return allOptions(tree)
    .filter(({ choices }) => choices.length > 0)
    .map(({ long, choices }) => `    ${long}) ${complete(choices)}; return ;;`)
    .join('\n');
}

function wordCases(tree: readonly CommandNode[]): string {
  return tree
    .map(({ path, commands, choices, options }) => {
      const words = [...commands.map(({ word }) => word), ...choices, ...options.map(({ long }) => long)];
      return `    ${quote(path === '' ? '' : ` ${path}`)}) ${complete(words)} ;;`;
    })
    .join('\n');
}

function complete(words: readonly string[]): string {
  return `COMPREPLY=($(compgen -W ${quote(words.join(' '))} -- "$cur"))`;
}
