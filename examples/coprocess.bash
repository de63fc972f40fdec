#!/usr/bin/env bash
# A conversation from a script: duologue is a coprocess of bash, and jq makes lines of its frames that bash can read.
set -euo pipefail

lines='if .uiEvent.name == "ChatTextSegmentFinished" then "text \(.uiEvent.payload.text | @json)"
    elif .error then "error \(.error.message | @json)" elif .done then "\(.done.status) \(.requestId)" else empty end'
coproc DUOLOGUE { duologue rpc --final-snapshot none "$@" | jq --unbuffered -r "$lines"; }
# Copies, because bash closes its own when the coprocess ends.
exec {answers}<&"${DUOLOGUE[0]}" {requests}>&"${DUOLOGUE[1]}" {DUOLOGUE[1]}>&-
number=0

# Prints the answer to a prompt; fails if there is none.
ask() {
    number=$((number + 1))
    jq -cn --arg id "r$number" --arg prompt "$1" '{requestId: $id, submit: {$prompt}}' >&"$requests" ||
        true # duologue has ended, and its answer says why.
    local kind rest
    while read -r kind rest <&"$answers"; do
        case $kind in
            text) jq -r . <<< "$rest" ;;
            error) jq -r . <<< "$rest" >&2 ;;
            ok) return 0 ;;
            *) return 1 ;;
        esac
    done
    return 1 # duologue has ended.
}

ask "What is a coprocess?"
ask "And what is it good for?"
exec {requests}>&- # The end of its input is the end of the conversation.
wait
