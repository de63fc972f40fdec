#!/bin/sh
# Runs the third party's provider until it is killed: start.sh INSTALL_DIR [PORT]
# On port 0, the default, it takes a free one. It prints the address once it answers.
set -eu
installed=$(cd "$1" && pwd)
cd "$(dirname "$0")"
# Without it the provider takes the turn's number for a hint; here answers depend on it.
export AIMOCK_STRICT_TURN_INDEX=1
exec node "$installed/node_modules/@copilotkit/aimock/dist/aimock-cli.js" --config aimock.json --port "${2:-0}"
