#!/bin/sh
# A client with one tool, as small as it can be: it offers get_time, asks, waits until the model calls the tool, and
# answers. Instead of a model, the built-in engine follows examples/tool.jsonl. Prints the frames.
#
#     sh examples/tool.sh

frames=$(mktemp -u) && mkfifo "$frames" || exit
trap 'rm -f "$frames"' EXIT
{
    echo '{"requestId":"d1","declareTools":{"tools":[{"name":"get_time","description":"The time now.","mode":"TOOL_EXECUTION_MODE_FRONTEND_AUTO","inputSchema":{"type":"object","properties":{"zone":{"type":"string"}}}}]}}'
    echo '{"requestId":"r1","submit":{"prompt":"What time is it?"}}'
    grep -m 1 -q FrontendToolCallRequested
    echo '{"requestId":"a1","toolResult":{"toolCallId":"call_1","result":{"time":"12:00"}}}'
    echo '{"requestId":"q1","shutdown":{}}'
    cat > /dev/null
} < "$frames" | duologue rpc --engine echo --echo-script examples/tool.jsonl --final-snapshot none | tee "$frames"
