#!/bin/sh
# A step of a CI job, as in "ci.sh README.md | jq -r .data": asks the prompt of a command file about files, and prints
# the answer as a JSON document. The key is a variable that the CI system sets from its secrets.
set -u
export DUOLOGUE_REQUIRE_PROVIDER=true # Without a provider the built-in engine would answer, and the job would pass.
tries=3
while :; do
    # A file that is named needs no trust: `duologue run summarize` would need `duologue profiles trust FILE` before it.
    document=$(duologue run-command examples/summarize.yaml "$@" --output json </dev/null)
    status=$?
    tries=$((tries - 1))
    # 75: the same command may succeed later. Any other status is the end.
    if [ "$status" != 75 ] || [ "$tries" = 0 ]; then break; fi
    sleep "${CI_WAIT_S:-30}"
done
if [ "$status" = 3 ]; then echo "The answer was cut off, as at a limit of tokens; --max-tokens raises it." >&2; fi
printf '%s\n' "$document"
exit "$status"
