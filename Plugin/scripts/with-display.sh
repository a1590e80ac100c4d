#!/bin/sh
# with-display.sh COMMAND...: runs a command with its own virtual X server, which chooses its number
# itself. (xvfb-run --auto-servernum looks for a free number before it starts the server, so two
# that start at the same time can get the same one.) -noreset: a server that resets when its last
# client leaves can miss the next one. ParaView opens and closes displays, and without -noreset it
# aborted in one run of 15. Where there is no Xvfb, the display at hand is used. Qt wants a folder for
# files of the session, XDG_RUNTIME_DIR, as a login makes one.
set -eu

if ! command -v Xvfb >/dev/null && [ -n "${DISPLAY:-}" ]; then
  exec "$@"
fi

folder=$(mktemp -d)
mkfifo "$folder/number"
Xvfb -displayfd 3 -screen 0 1280x1024x24 -nolisten tcp -noreset 3>"$folder/number" 2>"$folder/log" &
server=$!
# Stops the server even if a time limit ends this script.
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
DISPLAY=":$number" XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-$folder}" "$@" || status=$?
exit "$status"
