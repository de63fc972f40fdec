//! The file of `--save`: what it may not replace, and that it is written once the answer is there.

use crate::once::{Once, duologue, run};
use crate::process::eventually;
use crate::server::Folder;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A server that ends long after its input, and says when that has ended.
const SLOW_SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
trap '' TERM
: > ended
exec sleep 600
"#;

#[test]
fn a_signal_while_servers_end_does_not_take_the_saved_message_away() {
    let folder = Folder::new();
    fs::write(folder.path("server"), SLOW_SERVER).expect("a file");
    let words = ["exec", "hi", "--engine", "echo", "--mcp", "sh server", "--save", "saved"];
    let once = Once::start(duologue(&folder, &words));
    eventually("the server is to end", || folder.path("ended").exists().then_some(()));
    once.signal(Signal::INT);
    let ended = once.finish();
    assert_eq!(ended.stdout, "Turn 1. You said: hi\n", "{ended:?}");
    let saved = fs::read_to_string(folder.path("saved")).expect("the last message");
    assert_eq!(saved, ended.stdout, "{ended:?}");
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let folder = Folder::new();
    for kept in [0o644, 0o600, 0o640] {
        fs::write(folder.path("saved"), "old").expect("a file");
        fs::set_permissions(folder.path("saved"), PermissionsExt::from_mode(kept)).expect("ours");
        let ended = run(&folder, &["exec", "hi", "--engine", "echo", "--save", "saved"]);
        assert_eq!(ended.status, 0, "{ended:?}");
        let mode = fs::metadata(folder.path("saved")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, kept);
    }
}

/// The new file has the name of no other, also not of one that a process of the same id has left.
#[test]
fn a_file_beside_the_saved_one_stays() {
    let folder = Folder::new();
    let script = "echo other > saved.new-$$; exec \"$0\" exec hi --engine echo --save saved";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_duologue")]).current_dir(folder.path(""));
    let ended = Once::start(shell).finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    let names =
        fs::read_dir(folder.path("")).expect("a folder").map(|it| it.expect("a file").path());
    let left: Vec<_> = names.filter(|path| !path.ends_with("saved")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_to_string(&left[0]).expect("a file"), "other\n");
}
