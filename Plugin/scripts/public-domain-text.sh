#!/bin/sh
# Writes public-domain texts as one UTF-8 text file, on which the language models of the plugin are trained.
# They come from Debian packages:
#   king-james  the King James Bible, one verse a line, without references (bible-kjv, bible-kjv-text)
#   devil       The Devil's Dictionary by Ambrose Bierce, one paragraph a line (dict-devil)
#   jargon      the Jargon File 4.4.7, one paragraph a line (dict-jargon)
# Of several texts, each hundredth part of the file has a hundredth of each text, so that the part held out
# in a training has all of them, too.
#
# Usage: public-domain-text.sh FILE TEXT...
set -eu
export LC_ALL=C # texts are bytes, in any locale

if [ $# -lt 2 ]
then
  echo "Usage: $0 FILE TEXT...   TEXT is king-james, devil or jargon" >&2
  exit 2
fi

require() # what has to exist, the package that it is in
{
  if [ ! -e "$1" ]
  then
    echo "$0: $1 is missing; install the Debian package $2." >&2
    exit 1
  fi
}

king_james()
{
  require /usr/bin/bible bible-kjv
  /usr/bin/bible -f gen1:1-rev22:21 < /dev/null | sed 's/^[^ ]* //'
}

# The paragraphs of a dictionary from the first entry to the last: a line each, also for the name of an entry
# and its kind. Left out are pronunciations, which are between slashes, and braces around names of entries.
dictionary() # name, first entry
{
  require "/usr/share/dictd/$1.dict.dz" "dict-$1"
  gzip -dc < "/usr/share/dictd/$1.dict.dz" |
    sed -n "/^$2/,\$p" |
    sed "s/“\|”/\"/g; s/‘\|’/'/g; s/[{}]//g; s|^ /.*/,*| |" |
    awk 'BEGIN { RS = ""; FS = "[ \t\n]+" } { $1 = $1; sub(/^ /, ""); sub(/ $/, ""); print }' |
    sed '$d' # the letters that occur
}

folder=$(mktemp -d "$1.XXXXXX")
trap 'rm -rf "$folder"' EXIT
file=$1
shift
for text
do
  case $text in
    king-james) expected=31102; king_james ;;
    devil) expected=1461; dictionary devil ABASEMENT ;;
    jargon) expected=6503; dictionary jargon '(TM)' ;;
    *) echo "$0: expected king-james, devil or jargon, found $text." >&2; exit 2 ;;
  esac > "$folder/$text"
  lines=$(wc -l < "$folder/$text")
  if [ "$lines" -ne "$expected" ]
  then
    echo "$0: expected $expected lines of $text, found $lines." >&2
    exit 1
  fi
  awk -v lines="$lines" '{ print int(100 * (NR - 1) / lines) "\t" $0 }' "$folder/$text"
done > "$folder/all"
sort -s -n -k 1,1 "$folder/all" | cut -f 2- > "$folder/text"
chmod 644 "$folder/text"
mv "$folder/text" "$file"
