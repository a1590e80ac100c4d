#!/bin/sh
# man-pages.sh PROGRAM VERSION DATE FOLDER COMMAND...: makes man pages, of a program and of each of its
# commands, from what --help says. DATE is that of the pages. They are compressed.
set -eu
program=$1 version=$2 date=$3 folder=$4
shift 4

SOURCE_DATE_EPOCH=$(date --date="$date" +%s)
export SOURCE_DATE_EPOCH
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=$(basename "$program")
"$program" --help >"$work/all"

# page NAME SUMMARY: the page of a command whose help is in $work/help; others are listed in it.
page() {
  printf '#!/bin/sh\ncat "%s"\n' "$work/help" >"$work/$1"
  chmod +x "$work/$1"
  {
    printf '[SEE ALSO]\n'
    for other in $others; do
      printf '.BR %s (1)\n' "$(echo "$other" | sed 's/-/\\-/g')"
    done
  } >"$work/include"
  help2man --no-info --locale=C.UTF-8 --version-string="$version" --name="$2" \
    --include="$work/include" --output="$work/page" "$work/$1"
  # Examples stay on lines of their own.
  sed -e '/^\.SH EXAMPLES$/,/^\.SH "SEE ALSO"$/{s/^\.IP$/.nf/; s/^\.SH "SEE ALSO"$/.fi\n&/;}' "$work/page" \
    >"$work/edited"
  gzip -9n <"$work/edited" >"$folder/$1.1.gz.new"
  mv "$folder/$1.1.gz.new" "$folder/$1.1.gz"
}

cp "$work/all" "$work/help"
others=$(printf "$name-%s\n" "$@")
page "$name" "shows how transformers attend"
others=$name
for command; do
  "$program" "$command" --help >"$work/help"
  page "$name-$command" "$(sed -n "s/^  $command  *//p" "$work/all")"
done
