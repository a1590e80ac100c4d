#!/bin/sh
# Trains the models of Data/models again, from their recipes: the same bytes on the same processor
# and version of OpenBLAS. The language models need the Debian packages that public-domain-text.sh names.
#
# Usage: train-models.sh DIR [NAME...]   all models by default; attention-atlas is in PATH
set -eu

if [ $# -lt 1 ]
then
  echo "Usage: $0 DIR [NAME...]" >&2
  exit 2
fi
scripts=$(cd "$(dirname "$0")" && pwd)
models=$scripts/../../Data/models
mkdir -p "$1"
cd "$1"
shift
if [ $# -eq 0 ]
then
  set -- $(ls "$models")
fi
for name
do
  recipe=$models/$name/recipe.json
  text=$(sed -n 's/.*"text": "\(.*\)".*/\1/p' "$recipe")
  if [ -n "$text" ] && [ ! -f "$text" ]
  then
    case $text in
      king-james.txt) "$scripts/public-domain-text.sh" "$text" king-james ;;
      public-domain.txt) "$scripts/public-domain-text.sh" "$text" king-james devil jargon ;;
    esac
  fi
  echo "$name"
  attention-atlas learn --recipe "$recipe" --f16 -o "$name"
done
