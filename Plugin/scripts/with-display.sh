#!/bin/sh
# with-display.sh COMMAND...: runs a command with its own virtual X server, whose number follows from that
# of this process. A server that takes the first free number can get that of one which is just ending, and
# whose socket its clients then reach; and ParaView asks each display from :0 to :9 what it is. -noreset: a
# server that resets when its last client leaves can miss the next one. ParaView opens and closes displays,
# and without -noreset it aborted in one run of 15. Where there is no Xvfb, the display at hand is used. Qt
# wants a folder for files of the session, XDG_RUNTIME_DIR, as a login makes one.
set -eu

if ! command -v Xvfb >/dev/null && [ -n "${DISPLAY:-}" ]; then
  exec "$@"
fi

folder=$(mktemp -d)
mkfifo "$folder/number"
Xvfb ":$((1000 + $$))" -displayfd 3 -screen 0 1280x1024x24 -nolisten tcp -noreset 3>"$folder/number" 2>"$folder/log" &
server=$!
# Stops the server even if a time limit ends this script.
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
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
