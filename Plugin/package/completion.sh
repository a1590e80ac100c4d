#!/bin/sh
# completion.sh PROGRAM OUTPUT COMMAND...: writes what bash completes: commands, and the options of each,
# from what --help says; otherwise names of files.
set -eu
program=$1 output=$2
shift 2

options() {
  help=$("$program" "$@" --help)
  echo "$help" | grep -oE '^ +(-[a-zA-Z][^-]*, ?)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' |
    sort -u | tr '\n' ' '
}

mkdir -p "$(dirname "$output")"
{
  echo '# bash completion of attention-atlas'
  echo '_attention_atlas()'
  echo '{'
  echo '  local word=${COMP_WORDS[COMP_CWORD]} words='
  echo '  case $COMP_CWORD:${COMP_WORDS[1]} in'
  echo "    1:-*) words='--help --version' ;;"
  echo "    1:*) words='$*' ;;"
  for command; do
    found=$(options "$command")
    echo "    *:$command) [[ \$word == -* ]] && words='${found% }' ;;"
  done
  echo '  esac'
  echo '  COMPREPLY=($(compgen -W "$words" -- "$word"))'
  echo '}'
  echo 'complete -o default -F _attention_atlas attention-atlas'
} >"$output.new"
mv "$output.new" "$output"
