#!/bin/sh
# Trains the models of Data/models again, from their recipes: the same bytes on the same processor
# and version of OpenBLAS. The language models need the Debian package bible-kjv.
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
  if grep -q '"text": "king-james.txt"' "$recipe" && [ ! -f king-james.txt ]
  then
    "$scripts/king-james-text.sh" king-james.txt
  fi
  echo "$name"
  attention-atlas learn --recipe "$recipe" --f16 -o "$name"
done
