#!/bin/sh
# Writes the King James Bible as a UTF-8 text file, one verse a line, without references.
# The text is in the public domain and comes from the Debian packages bible-kjv (the program `bible`)
# and bible-kjv-text. The language models of the plugin are trained on it.
#
# Usage: king-james-text.sh FILE
set -eu

if [ $# -ne 1 ]
then
  echo "Usage: $0 FILE" >&2
  exit 2
fi
if ! command -v bible > /dev/null
then
  echo "$0: the program bible is missing; install the Debian package bible-kjv." >&2
  exit 1
fi

temporary=$(mktemp "$1.XXXXXX")
trap 'rm -f "$temporary"' EXIT
bible -f gen1:1-rev22:21 < /dev/null | sed 's/^[^ ]* //' > "$temporary"
verses=$(wc -l < "$temporary")
if [ "$verses" -ne 31102 ]
then
  echo "$0: expected 31102 verses of bible, found $verses." >&2
  exit 1
fi
chmod 644 "$temporary"
mv "$temporary" "$1"
