#!/bin/sh
# A job for cron, as in "5 3 * * *  nightly.sh /var/log/app.log /srv/reports": asks about the end of a log, and keeps
# the answer of each day. A report is whole or not there. What goes wrong is on standard error, which cron mails.
set -eu
export DUOLOGUE_REQUIRE_PROVIDER=true # Without a provider the built-in engine would answer.
log=$1 report=$2/$(date +%F).md tries=3
until tail -n 200 "$log" | duologue exec "What in this log needs a person?" - > "$report.new"; do
    status=$?
    tries=$((tries - 1))
    # 75: the same command may succeed later. Any other status needs a person.
    if [ "$status" != 75 ] || [ "$tries" = 0 ]; then
        rm -f "$report.new"
        exit "$status"
    fi
    sleep "${NIGHTLY_WAIT_S:-600}"
done
mv "$report.new" "$report"
