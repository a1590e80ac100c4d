#!/bin/sh
# with-display.sh COMMAND...: runs a command with a virtual X server of its own, whose number the
# server itself chooses. (xvfb-run --auto-servernum looks for a free number before it starts the
# server, so that two that start together can share one.) -noreset: a server that starts anew when its
# last client leaves can miss the next one, and ParaView opens and closes displays; it aborted in one
# run of 15.
set -eu

folder=$(mktemp -d)
mkfifo "$folder/number"
Xvfb -displayfd 3 -screen 0 1280x1024x24 -nolisten tcp -noreset 3>"$folder/number" 2>"$folder/log" &
server=$!
# Also when a time limit ends this script, the server goes with it.
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT HUP

number=""
read -r number <"$folder/number" || true
if [ -z "$number" ]; then
  cat "$folder/log" >&2
  echo "with-display.sh: Xvfb did not start" >&2
  exit 1
fi
status=0
DISPLAY=":$number" "$@" || status=$?
exit "$status"
