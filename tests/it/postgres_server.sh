# A PostgreSQL server for tests and benchmarks, which ends with this shell's standard input. A line of it is a signal
# by which the server ends, to be started again.
#
# postgres_server.sh PROGRAMS FOLDER PORT USER [OPTION]...
#
# FOLDER has the file `password`. A server refuses to run as root.

bin=$1 folder=$2 port=$3 user=$4
shift 4
as=
if [ "$(id -u)" = 0 ]; then
    chown postgres "$folder" "$folder"/*
    as='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
cd "$folder"
$as "$bin/initdb" --pgdata "$folder/data" --username "$user" --auth scram-sha-256 \
    --pwfile "$folder/password" --encoding UTF8 --locale C --no-sync > "$folder/log" 2>&1 || exit 1
tls=off
if [ -e "$folder/server.key" ]; then
    chmod 600 "$folder/server.key"
    tls=on
fi
authority=
if [ -e "$folder/client.pem" ]; then
    authority="$folder/client.pem"
    { echo 'hostssl all cert_user 127.0.0.1/32 cert'; cat "$folder/data/pg_hba.conf"; } > "$folder/hba"
    cat "$folder/hba" > "$folder/data/pg_hba.conf"
fi
start() {
    $as "$bin/postgres" -D "$folder/data" -p "$port" -k "$folder" -c listen_addresses=127.0.0.1 \
        -c fsync=off -c shared_buffers=16MB -c wal_level=minimal -c max_wal_senders=0 \
        -c max_connections=60 -c ssl=$tls \
        -c ssl_cert_file="$folder/server.pem" -c ssl_key_file="$folder/server.key" \
        -c ssl_ca_file="$authority" "$@" >> "$folder/log" 2>&1 < /dev/null &
    server=$!
}
start "$@"
while read -r signal; do
    kill -s "$signal" "$server"
    wait "$server"
    start "$@"
done
kill -s QUIT "$server"
wait "$server"
rm -rf "$folder"
