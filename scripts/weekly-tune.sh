#!/bin/sh
# The weekly job: tidy the telemetry, tune the configuration on the last month, say what changed.
#
# usage: weekly-tune.sh [OPTION of `devboy tune analyze`]…
#
#   DEVBOY           the program (default: devboy from PATH, ~/.cargo/bin or ~/.local/bin)
#   DEVBOY_DAYS      days that count (default 30)
#   DEVBOY_SOURCE    telemetry, logs, or auto (default): telemetry if there is any, else the logs
#
# Prints nothing when nothing changed. Exits with 0 unless something is wrong. A second run beside the first one leaves
# the work to it.
set -eu

devboy=${DEVBOY:-devboy}
days=${DEVBOY_DAYS:-30}
source=${DEVBOY_SOURCE:-auto}

# Cron knows neither of these.
PATH=$PATH:$HOME/.cargo/bin:$HOME/.local/bin

command -v "$devboy" >/dev/null 2>&1 || {
    echo "weekly-tune: $devboy is not on PATH; set DEVBOY to its full path" >&2
    exit 127
}

# A lock is a directory: making one either works or does not, on every system.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/devboy
mkdir -p "$cache"
lock=$cache/weekly.lock
if ! mkdir "$lock" 2>/dev/null; then
    holder=$(cat "$lock/pid" 2>/dev/null || echo)
    # Whoever died without cleaning up holds nothing, and after a day its number is another's. A lock without a number was made this
    # very moment, unless it is old.
    if [ -n "$holder" ]; then
        if kill -0 "$holder" 2>/dev/null && [ -z "$(find "$lock" -prune -mmin +1440 2>/dev/null)" ]; then exit 0; fi
    elif [ -z "$(find "$lock" -prune -mmin +60 2>/dev/null)" ]; then
        exit 0
    fi
    rm -rf "$lock"
    mkdir "$lock" 2>/dev/null || exit 0
fi
trap 'rm -rf "$lock"' EXIT
trap 'exit 1' HUP INT TERM
echo $$ >"$lock/pid"

# Whether devboy finds any events, wherever they are recorded: without any this fails.
recorded() {
    "$devboy" mine fingerprints --from-telemetry --quiet >/dev/null 2>&1
}
if [ "$source" = auto ]; then
    if recorded; then source=telemetry; else source=logs; fi
fi
case $source in
telemetry) from= ;;
logs) from=--from-claude-logs ;;
*)
    echo "weekly-tune: DEVBOY_SOURCE is telemetry, logs or auto, not $source" >&2
    exit 2
    ;;
esac

"$devboy" ingest --prune --allow-empty --quiet >/dev/null

# A quiet month is no error: --allow-empty. $from is one word or none.
code=0
# shellcheck disable=SC2086
"$devboy" tune analyze $from --days "$days" --allow-empty --quiet "$@" || code=$?
case $code in
0) ;;
3) echo "weekly-tune: the proposals together would save less; the configuration stays as it is" ;;
4) ;; # --check: changes are pending, and were printed
*) exit "$code" ;;
esac
