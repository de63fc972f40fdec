#!/bin/sh
# Installs what tests need that talk to programs of others, below target/clients/. Needs python3
# with venv, node with npm, go and cargo. Running it again is cheap and repairs what is broken.
set -eu

sources=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$sources/../../target}
mkdir -p "$target/clients"
clients=$(cd "$target/clients" && pwd)

need() {
    command -v "$1" >/dev/null || { echo "install.sh: $1 is not on the PATH" >&2; exit 1; }
}

install_python() {
    python3 -m venv "$clients/python"
    "$clients/python/bin/python" -m pip install --quiet --disable-pip-version-check \
        --only-binary :all: --requirement "$sources/python/requirements.txt"
}

# MCP servers in Python, the libraries of the providers, a client of ACP and linters of manifests, each apart: they bring many packages.
# install_apart NAME
install_apart() {
    python3 -m venv "$clients/$1/python"
    "$clients/$1/python/bin/python" -m pip install --quiet --disable-pip-version-check \
        --only-binary :all: --requirement "$sources/$1/requirements.txt"
}

# npm_package NAME FILE...: the files are linked, not copied, so that they are never stale.
npm_package() {
    name=$1
    shift
    mkdir -p "$clients/$name"
    for file in package.json package-lock.json "$@"; do
        ln -sf "$sources/$name/$file" "$clients/$name/$file"
    done
    npm ci --prefix "$clients/$name" --ignore-scripts --no-audit --no-fund --loglevel=error
}

# Built here once, so that the tests find the build cache warm and need no network.
install_go() {
    go build -C "$sources/go" -o "$clients/go/check_frames" .
    go build -C "$sources/go" -o "$clients/go/follow" ./follow
    go build -C "$sources/acp/go" -o "$clients/acp/go/scenarios" .
}

install_rust() {
    cargo build --quiet --locked --manifest-path "$sources/acp/rust/Cargo.toml" \
        --target-dir "$clients/acp/rust"
}

# Clients of a node: programs that others wrote, and one with types that are generated here. The tools of the module
# are these programs and the generators.
install_fleet() {
    # ghz needs an older grpc-go than the others.
    for module in fleet fleet/ghz; do
        GOBIN="$clients/fleet/bin" go install -C "$sources/$module" tool
    done
    mkdir -p "$clients/fleet/client"
    for file in go.mod go.sum main.go; do cp "$sources/fleet/$file" "$clients/fleet/client/$file"; done
    mappings= gen="duologue.test/fleet/gen;gen"
    proto=$sources/../../proto
    files=$(cd "$proto" && find . -name '*.proto' ! -path '*/store/*' | sed 's|^\./||')
    for file in $files; do
        mappings="$mappings --go_opt=M$file=$gen --go-grpc_opt=M$file=$gen"
    done
    # shellcheck disable=SC2086
    PATH="$clients/fleet/bin:$PATH" "$clients/python/bin/python" -m grpc_tools.protoc -I "$proto" $files $mappings \
        --go_out="$clients/fleet/client" --go_opt=module=duologue.test/fleet \
        --go-grpc_out="$clients/fleet/client" --go-grpc_opt=module=duologue.test/fleet
    go build -C "$clients/fleet/client" -o "$clients/fleet/bin/fleet" .
}

for tool in python3 node npm go cargo; do need "$tool"; done
# Downloads take most of the time, so that these wait for theirs together with the rest.
install_apart mcp &
servers=$!
install_apart sdks &
sdks=$!
install_apart acp/python &
acp=$!
install_apart manifests &
manifests=$!
install_python
npm_package node check_frames.mjs follow.mjs
npm_package third_party
npm_package mcp
npm_package acp/node agent.mjs scenarios.mjs
install_go
install_fleet
install_rust
wait "$servers"
wait "$sdks"
wait "$acp"
wait "$manifests"
echo "install.sh: installed in $clients"
