#!/bin/sh
# man-page.sh TOOL INCLUDE VERSION DATE OUTPUT: makes the man page of a tool from its --help.
# INCLUDE has what --help does not say; DATE is that of the page. The page is compressed.
set -eu
tool=$1 include=$2 version=$3 date=$4 output=$5

SOURCE_DATE_EPOCH=$(date --date="$date" +%s)
export SOURCE_DATE_EPOCH
mkdir -p "$(dirname "$output")"
trap 'rm -f "$output.new" "$output.page"' EXIT
help2man --no-info --locale=C.UTF-8 --version-string="$version" --include="$include" \
  --output="$output.page" "$tool"
# INCLUDE has the synopsis, in its usual place.
sed '/^\.SS "Usage:"$/,/\[OPTION/d' "$output.page" | gzip -9n >"$output.new"
mv "$output.new" "$output"
